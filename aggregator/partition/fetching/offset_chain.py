"""The unbroken chain of offsets fetched from one partition since the last rewind. Pure.

Rule 1: the gate counts exactly the record that follows the ledger's position. The chain knows which one
follows, because every record fetched since the rewind passed through `admit`, in order.
Rule 2: offsets missing between two fetched records are holes of the log itself: transaction markers, or
records removed by compaction.
Rule 3: a chain with a last counted record begins at that one, and is followed only once the log has shown it
again. So a log that lost its end and grew again is noticed before anything of it is counted.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.fetching.last_record import LastRecord

Offsets = Sequence[int] | npt.NDArray[np.int64]


class BrokenChainError(Exception):
    """Fetched records do not continue the chain; rewind to begin a new one."""


class OffsetChain:
    """Offsets fetched since a rewind to `start`, or to the last counted record before it.

    `cursor` is the offset after the last fetched record; `fetched_until` is the fetcher's own position,
    beyond holes at the end; `is_proven`, whether the log continues what was counted; `other`, what it has in
    place of the last counted record, with an offset of its own if it has none there.
    """

    def __init__(self, start: int, last: LastRecord | None = None) -> None:
        self.start = start
        self.last = last
        self.cursor = start if last is None else last.offset
        self.fetched_until = self.cursor
        self.is_proven = last is None
        self.other: LastRecord | None = None
        self.was_fed = False  # whether a fetch has returned records
        self._follower: dict[int, int] = {}  # offset before a hole -> offset of the record after it

    def prove(self, runs: Sequence[Run]) -> list[Run]:
        """Compare the first fetched record with the last counted one; return what follows that."""
        if self.is_proven or self.last is None or not runs:
            return list(runs)
        found = LastRecord.of(runs[0], 0)
        if not found.is_same(self.last):
            self.other = found
            return []
        self.is_proven, self.cursor = True, self.start
        firsts = [int(run.offsets.searchsorted(self.start)) for run in runs]
        return [
            run.part(first, len(run)) for first, run in zip(firsts, runs, strict=True) if first < len(run)
        ]

    def first_hole(self, offsets: Offsets, fetched_until: int) -> int | None:
        """Lowest offset that a fetch skipped, None if it skipped none; parameters: see `admit`.

        It is a hole of the log, or a record that retention deleted first: compare the log's start.
        """
        if not len(offsets):
            return self.cursor if fetched_until > self.cursor else None
        if offsets[0] > self.cursor:
            return self.cursor
        if not _is_contiguous(offsets):
            return int(offsets[int(np.argmax(np.diff(offsets) != 1))]) + 1
        last = int(offsets[-1])
        return last + 1 if fetched_until > last + 1 else None

    def admit(self, offsets: Offsets, fetched_until: int) -> None:
        """Append the records of one fetch.

        Parameters
        ----------
        offsets : of its records, ascending; may be empty.
        fetched_until : the fetcher's position after it.

        Raises
        ------
        BrokenChainError if a record lies before the cursor.
        """
        if len(offsets):
            if offsets[0] != self.cursor or not _is_contiguous(offsets):
                self._admit_with_holes(np.asarray(offsets, np.int64).tolist())
            self.cursor = int(offsets[-1]) + 1
        self.fetched_until = max(self.cursor, fetched_until)

    def follows(self, position: int) -> int:
        """Offset of the next record at or after a position, beyond a hole there."""
        return self._follower.get(position, position)

    def following(self, position: int, offsets: Offsets) -> slice:
        """Which of these offsets, ascending, follow a position without a gap: a place in them, maybe empty.

        They are the first one that `follows` the position, the one that follows its successor, and so on.
        """
        if not self._follower and _is_contiguous(offsets):
            first = position - int(offsets[0])
            return slice(first, len(offsets)) if 0 <= first < len(offsets) else slice(0, 0)
        listed = np.asarray(offsets, np.int64).tolist()
        expected, first, end = self.follows(position), 0, 0
        for place, offset in enumerate(listed):
            if offset == expected:
                first, end = (place, place + 1) if not end else (first, place + 1)
                expected = self.follows(offset + 1)
            elif end:
                break
        return slice(first, end)

    def pass_hole(self, position: int) -> int:
        """Position beyond a hole at the end of the log, once all fetched records are counted.

        A stored position must not stay before such a hole of transaction markers: once retention deletes the
        hole, records would seem lost.
        """
        if position == self.cursor:
            self.cursor = self.fetched_until
            return self.cursor
        return position

    def passed(self, position: int) -> None:
        """Forget the holes before a position."""
        if self._follower:
            self._follower = {before: after for before, after in self._follower.items() if before >= position}

    def _admit_with_holes(self, offsets: list[int]) -> None:
        cursor = self.cursor
        for offset in offsets:
            if offset < cursor:
                raise BrokenChainError(f"offset {offset} was fetched after {cursor - 1}")
            if offset > cursor:
                self._follower[cursor] = offset
            cursor = offset + 1


def _is_contiguous(offsets: Offsets) -> bool:
    """Whether ascending offsets have no gap; there must be one at least."""
    return int(offsets[-1]) - int(offsets[0]) == len(offsets) - 1
