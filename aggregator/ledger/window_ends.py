"""When windows of a ledger close, and when their counts are deleted. Pure.

Rule 1: without relays, windows are closed until W, the highest append time so far.
Rule 2: with relays, until the time that they have sent, as the last relays' marker says: what was uploaded
within the grace counts, however late its packs come. But no window waits for longer than `wait_ms`.
Rule 3: this time never goes back.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec
import numpy as np
import numpy.typing as npt

from deniable.protocol.marker import RELAYS_BYTES, decode_relays

_Times = npt.NDArray[np.int64]
_Key = tuple[int, int]  # fingerprint and start of a window
_Heap = list[tuple[int, _Key]]  # of (unix seconds, window)


class Closing(msgspec.Struct, frozen=True):
    """What the last relays' marker of a partition said (see `protocol.marker`).

    Parameters
    ----------
    key : of the ledger's relays' markers, `marker.KEY_BYTES`; empty while no relay has been seen.
    number, sent_ms, wait_ms : of the last marker; number 0 before the first.
    """

    key: bytes = b""
    number: int = 0
    sent_ms: int = 0
    wait_ms: int = 0

    def closed_until_ms(self, watermark_ms: int) -> int:
        """Until when windows are closed at this watermark, both unix milliseconds."""
        return max(min(watermark_ms, self.sent_ms), watermark_ms - self.wait_ms)

    def wrote(self, record: bytes) -> bool:
        """Whether a record is a relays' marker of this ledger, a copy included."""
        return bool(self.key) and decode_relays(self.key, record) is not None

    def after(self, record: bytes) -> "Closing":
        """What holds after this record: the same, unless it is the next marker."""
        sent = decode_relays(self.key, record) if self.key else None
        return Closing(self.key, *sent) if sent and sent.number > self.number else self


NO_RELAYS = Closing()


def closed_over(
    lengths: _Times, record: Callable[[int], bytes], watermarks_ms: _Times, closing: Closing
) -> tuple[_Times, Closing]:
    """Until when windows are closed at each record of a run, int64 (n,), and what holds after it.

    Parameters
    ----------
    lengths, record : of the run, at least one record: int64 (n,), and a record by its number.
    watermarks_ms : int64 (n,), the highest append time up to each record.
    closing : before the run.
    """
    if not closing.key:
        return watermarks_ms, closing
    closed_ms = watermarks_ms.copy()
    marks = np.flatnonzero(lengths == RELAYS_BYTES).tolist()
    for first, end in pairwise([0, *marks, len(lengths)]):
        closing = closing.after(record(first)) if marks else closing
        part = watermarks_ms[first:end]
        closed_ms[first:end] = np.maximum(np.minimum(part, closing.sent_ms), part - closing.wait_ms)
    return np.maximum.accumulate(closed_ms), closing


class WindowEnds:
    """Reports each tracked window once when it closes, and once when it dies."""

    def __init__(self) -> None:
        self._closing: _Heap = []
        self._dying: _Heap = []
        self._known: set[_Key] = set()

    def track(self, window: _Key, closes_at: int, dies_at: int) -> None:
        """Track a window that is not tracked yet; times in unix seconds."""
        self._known.add(window)
        heapq.heappush(self._closing, (closes_at, window))
        heapq.heappush(self._dying, (dies_at, window))

    def tracks(self, window: _Key) -> bool:
        """Whether a window is tracked."""
        return window in self._known

    def between(self, first_ms: int, last_ms: int) -> _Times:
        """When tracked windows close or die within these times, unix milliseconds."""
        due = [
            end * 1000
            for heap in (self._closing, self._dying)
            if heap and heap[0][0] * 1000 <= last_ms
            for end, _ in heap
            if first_ms <= end * 1000 <= last_ms
        ]
        return np.array(due, np.int64)

    def closed(self, closed_until_ms: int) -> Iterator[_Key]:
        """Windows closed since the last call: they accept no more packs."""
        return _ended(self._closing, closed_until_ms)

    def dead(self, closed_until_ms: int) -> Iterator[_Key]:
        """Windows that died since the last call: delete their counts."""
        for window in _ended(self._dying, closed_until_ms):
            self._known.discard(window)
            yield window


def _ended(heap: _Heap, closed_until_ms: int) -> Iterator[_Key]:
    while heap and closed_until_ms > heap[0][0] * 1000:
        yield heapq.heappop(heap)[1]
