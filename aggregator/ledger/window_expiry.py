"""When windows of a ledger close, and when their counts are deleted."""

import heapq
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.terms import Terms

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

    def between(self, first_ms: int, last_ms: int) -> npt.NDArray[np.int64]:
        """When tracked windows close or die within these times, unix milliseconds."""
        due = [
            end * 1000
            for heap in (self._closing, self._dying)
            if heap and heap[0][0] * 1000 <= last_ms
            for end, _ in heap
            if first_ms <= end * 1000 <= last_ms
        ]
        return np.array(due, np.int64)

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
