"""A set of 16-byte ids that only grows, for arrays of ids: receivers look up what was delivered before.

A Python set takes 100 bytes an id, and a look-up of its own for each. Here an id takes 16 bytes, in sorted
runs, and all ids of a batch are looked up in each run at once. Runs of similar size are merged, so n ids in
batches of 256 have about log2(n / 256) runs, and runs of RUN_IDS are left as they are.

Rule: runs are sorted by the first half, and ids that share it by the second. Random ids never share one, so
they are searched by the first half alone; ids that somebody chose to share it cost a binary search more.

Nearly all ids that are looked up are new. So a table has a byte for each value of the first bits of an id,
four to eight bytes for each id, and 16 MiB at most: where it has zero, the id is new, and no run is searched.
No step takes long: neither does a run grow beyond RUN_IDS, nor the table beyond what a cache holds.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

RUN_IDS = 1 << 20
LEAST_SLOTS_BITS = 12
MOST_SLOTS_BITS = 24
SLOTS_PER_ID = 4  # at least, in a table that may still grow
GROWTH = 2  # a run that is at most this many times the next one is merged with it

Halves = NDArray[np.uint64]


class IdSet:
    """Ids, each given as its two halves, uint64."""

    __slots__ = ("_bits", "_count", "_runs", "_taken")

    def __init__(self) -> None:
        self._runs: list[tuple[Halves, Halves]] = []
        self._count = 0
        self._bits = LEAST_SLOTS_BITS
        self._taken = np.zeros(1 << self._bits, np.uint8)

    def __len__(self) -> int:
        return self._count

    def runs(self) -> Iterator[tuple[Halves, Halves]]:
        """All ids, in parts."""
        yield from self._runs

    def holds(self, low: Halves, high: Halves) -> NDArray[np.bool_]:
        """Whether each id was added, bool (n,); faster if `low` is sorted."""
        held: NDArray[np.bool_] = self._taken[low >> np.uint64(64 - self._bits)] > 0
        maybe = np.flatnonzero(held)
        if len(maybe):
            found: NDArray[np.bool_] = np.zeros(len(maybe), np.bool_)
            for run in self._runs:
                found |= _holds(run, low[maybe], high[maybe])
            held[maybe] = found
        return held

    def holds_one(self, low: int, high: int) -> bool:
        """Whether this id was added: `holds` for a single one, without its arrays."""
        if not self._taken[low >> (64 - self._bits)]:
            return False
        return any(_holds_one(run, np.uint64(low), np.uint64(high)) for run in self._runs)

    def add(self, low: Halves, high: Halves) -> None:
        """Add new ids, `low` ascending."""
        run = _in_order(low, high)
        self._count += len(low)
        self._taken[low >> np.uint64(64 - self._bits)] = 1
        while self._runs and len(self._runs[-1][0]) <= GROWTH * len(run[0]):
            if len(self._runs[-1][0]) + len(run[0]) > RUN_IDS:
                break
            run = _merged(self._runs.pop(), run)
        if len(low):
            self._runs.append(run)
        if self._count * SLOTS_PER_ID > len(self._taken) and self._bits < MOST_SLOTS_BITS:
            self._grow()

    def _grow(self) -> None:
        while self._count * SLOTS_PER_ID > 1 << self._bits and self._bits < MOST_SLOTS_BITS:
            self._bits += 1
        self._taken = np.zeros(1 << self._bits, np.uint8)
        for low, _ in self._runs:
            self._taken[low >> np.uint64(64 - self._bits)] = 1


def _holds(run: tuple[Halves, Halves], low: Halves, high: Halves) -> NDArray[np.bool_]:
    place = run[0].searchsorted(low)
    place[place == len(run[0])] = 0
    same: NDArray[np.bool_] = run[0][place] == low
    held: NDArray[np.bool_] = same & (run[1][place] == high)
    others = np.flatnonzero(same & ~held)
    if len(others):
        ends = run[0].searchsorted(low[others], "right")
        held[others] = _holds_between(run[1], place[others], ends, high[others])
    return held


def _holds_between(
    sought: Halves, first: NDArray[np.int64], end: NDArray[np.int64], high: Halves
) -> NDArray[np.bool_]:
    """Whether each of `high` (n,) is in its own sorted part of `sought`, from `first` to before `end`."""
    last = end - 1
    for _ in range(int((end - first).max()).bit_length()):
        middle = np.minimum((first + end) // 2, last)
        is_below = sought[middle] < high
        first, end = np.where(is_below, middle + 1, first), np.where(is_below, end, middle)
    found: NDArray[np.bool_] = sought[np.minimum(first, last)] == high
    return found


def _holds_one(run: tuple[Halves, Halves], low: np.uint64, high: np.uint64) -> bool:
    first, end = run[0].searchsorted(low), run[0].searchsorted(low, "right")
    place = first + run[1][first:end].searchsorted(high)
    return bool(place < end and run[1][place] == high)


def _merged(first: tuple[Halves, Halves], second: tuple[Halves, Halves]) -> tuple[Halves, Halves]:
    low, high = (np.concatenate(halves) for halves in zip(first, second, strict=True))
    order = low.argsort(kind="stable")  # which merges sorted runs in one pass
    return _in_order(low[order], high[order])


def _in_order(low: Halves, high: Halves) -> tuple[Halves, Halves]:
    """Sort ids, whose first halves ascend, by their second halves where they share the first."""
    shared = low[1:] == low[:-1]
    if not shared.any():
        return low, high
    is_tied = np.concatenate((shared, [False])) | np.concatenate(([False], shared))
    tied = np.flatnonzero(is_tied)
    high = high.copy()
    high[tied] = high[tied[np.lexsort((high[tied], low[tied]))]]
    return low, high
