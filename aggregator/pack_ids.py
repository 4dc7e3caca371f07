"""The ids of the packs counted in one window: 16 bytes each, and no long step.

A Python set takes 100 bytes for an id, and one sorted array of millions takes long to extend. So ids lie in
sorted runs of at most RUN_IDS; what came last, in a small set. A lookup asks each run: microseconds in all.
"""

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

ID = np.dtype("S16")  # compares byte by byte; of equal length, so the zeros that it pads with change nothing
RUN_IDS = 1 << 20
FRESH_IDS = 1 << 12
LEAST_FRESH_IDS = 1 << 6


class PackIds:
    """A set of ids that only grows.

    Costs 16 bytes for each, and a Python object for an eighth of them, FRESH_IDS at most.
    """

    __slots__ = ("_fresh", "_most_fresh", "_runs")

    def __init__(self) -> None:
        self._runs: list[npt.NDArray[np.bytes_]] = []
        self._fresh: set[bytes] = set()
        self._most_fresh = LEAST_FRESH_IDS

    def __contains__(self, pack_id: bytes) -> bool:
        return pack_id in self._fresh or any(_holds(run, pack_id) for run in self._runs)

    def __iter__(self) -> Iterator[bytes]:
        yield from self._fresh
        for run in self._runs:
            data = run.tobytes()
            yield from (data[first : first + ID.itemsize] for first in range(0, len(data), ID.itemsize))

    def __len__(self) -> int:
        return len(self._fresh) + sum(map(len, self._runs))

    def add(self, pack_id: bytes) -> None:
        """Add an id of 16 bytes that is not in it yet."""
        self._fresh.add(pack_id)
        if len(self._fresh) >= self._most_fresh:
            self._settle()

    @classmethod
    def of(cls, stored: Sequence[memoryview]) -> Self:
        """The set of many ids, given in parts: it takes no more memory meanwhile than in the end."""
        made, left = cls(), sum(map(len, stored)) // ID.itemsize
        parts = (np.frombuffer(part, ID) for part in stored)
        rest = np.empty(0, ID)
        while left:
            run, filled = np.empty(min(left, RUN_IDS), ID), 0
            while filled < len(run):
                rest = rest if len(rest) else next(parts)
                taken = min(len(rest), len(run) - filled)
                run[filled : filled + taken], rest = rest[:taken], rest[taken:]
                filled += taken
            run.sort()
            made._runs.append(run)
            left -= len(run)
        return made

    def _settle(self) -> None:
        """Sort what came last into the last run, or into a new one when that is full."""
        fresh = np.sort(np.frombuffer(b"".join(self._fresh), ID))
        if self._runs and len(self._runs[-1]) + len(fresh) <= RUN_IDS:
            # Two sorted runs in a row are what a stable sort merges in one pass.
            self._runs[-1] = np.sort(np.concatenate((self._runs[-1], fresh)), kind="stable")
        else:
            self._runs.append(fresh)
        self._fresh = set()
        # A share of the last run: many windows of a few thousand ids each would else hold them in sets.
        self._most_fresh = min(FRESH_IDS, max(LEAST_FRESH_IDS, len(self._runs[-1]) // 8))


def _holds(run: npt.NDArray[np.bytes_], pack_id: bytes) -> bool:
    place = int(run.searchsorted(pack_id))
    return place < len(run) and run[place : place + 1].tobytes() == pack_id
