"""When the windows of a ledger close, and when they die."""

import heapq
from collections.abc import Iterator

from aggregator.ledger.row_keys import Window
from aggregator.ledger.terms import Terms

_Heap = list[tuple[int, Window]]  # of (unix seconds, window)


class WindowEnds:
    """Tells of each tracked window once that it is closed, and once that it is dead."""

    def __init__(self) -> None:
        self._closing: _Heap = []
        self._dying: _Heap = []
        self._known: set[Window] = set()

    def track(self, window: Window, terms: Terms) -> None:
        """Note when this window ends, if that is not known yet."""
        if window not in self._known:
            self._known.add(window)
            heapq.heappush(self._closing, (terms.closes_at(window[1]), window))
            heapq.heappush(self._dying, (terms.dies_at(window[1]), window))

    def closed(self, watermark_ms: int) -> Iterator[Window]:
        """Windows that nothing can be counted in any more, since the last call."""
        return _ended(self._closing, watermark_ms)

    def dead(self, watermark_ms: int) -> Iterator[Window]:
        """Windows whose counts are to be deleted, since the last call."""
        for window in _ended(self._dying, watermark_ms):
            self._known.discard(window)
            yield window


def _ended(heap: _Heap, watermark_ms: int) -> Iterator[Window]:
    while heap and watermark_ms > heap[0][0] * 1000:
        yield heapq.heappop(heap)[1]
