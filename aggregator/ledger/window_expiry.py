"""When windows of a ledger close, and when their counts are deleted."""

import heapq
from collections.abc import Iterator

from aggregator.ledger.row_keys import Window
from aggregator.ledger.terms import Terms

_Heap = list[tuple[int, Window]]  # of (unix seconds, window)


class WindowEnds:
    """Reports each tracked window once when it closes, and once when it dies."""

    def __init__(self) -> None:
        self._closing: _Heap = []
        self._dying: _Heap = []
        self._known: set[Window] = set()

    def track(self, window: Window, terms: Terms) -> None:
        """Track a window, unless it is tracked already."""
        if window not in self._known:
            self._known.add(window)
            heapq.heappush(self._closing, (terms.closes_at(window[1]), window))
            heapq.heappush(self._dying, (terms.dies_at(window[1]), window))

    def closed(self, watermark_ms: int) -> Iterator[Window]:
        """Windows closed since the last call: they accept no more packs."""
        return _ended(self._closing, watermark_ms)

    def dead(self, watermark_ms: int) -> Iterator[Window]:
        """Windows that died since the last call: delete their counts."""
        for window in _ended(self._dying, watermark_ms):
            self._known.discard(window)
            yield window


def _ended(heap: _Heap, watermark_ms: int) -> Iterator[Window]:
    while heap and watermark_ms > heap[0][0] * 1000:
        yield heapq.heappop(heap)[1]
