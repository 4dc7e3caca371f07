"""The pack ids of all open windows of a ledger, in memory and as stored rows.

In memory an id takes 16 bytes. A Python set takes 100 bytes per id, and one sorted array of millions is slow
to extend, so ids are kept in sorted runs, the newest in a small set.

Each checkpoint stores a row of new ids, and small rows are merged once: a window of a day would otherwise
have 170,000 rows, to be read when its ledger opens and deleted in one transaction when it closes. Until they
are merged, their ids stay in memory as stored, at most MERGED_IDS per window.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from aggregator.ledger import row_keys, row_values
from aggregator.ledger.row_keys import Window

ID = np.dtype("S16")  # compares byte by byte; of equal length, so the zeros that it pads with change nothing
RUN_IDS = 1 << 20
FRESH_IDS = 1 << 12
LEAST_FRESH_IDS = 1 << 6
MERGED_ROWS = 64
MERGED_IDS = 1024


class PackIds:
    """A set of ids that only grows.

    Costs 16 bytes per id, and a Python object for an eighth of them, at most FRESH_IDS.
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
        """Add a new id of 16 bytes."""
        self._fresh.add(pack_id)
        if len(self._fresh) >= self._most_fresh:
            self._settle()

    @classmethod
    def of(cls, stored: Sequence[memoryview]) -> Self:
        """Build a set from ids given in parts, without more memory than the result takes."""
        ids, left = cls(), sum(map(len, stored)) // ID.itemsize
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
            ids._runs.append(run)
            left -= len(run)
        return ids

    def _settle(self) -> None:
        """Sort the fresh ids into the last run, or into a new one when that is full."""
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


class WindowIds:
    """Ids by window; look a pack's id up in `by_window`."""

    def __init__(self) -> None:
        self.by_window: dict[Window, PackIds] = {}
        self._unstored: dict[Window, list[bytes]] = {}
        self._rows: dict[Window, list[int]] = {}  # the number of each stored row
        self._small: dict[Window, list[bytes]] = {}  # ids of the last of these rows, which are not merged yet

    def add(self, window: Window, pack_id: bytes) -> None:
        """Add a new id to a window."""
        self.by_window.setdefault(window, PackIds()).add(pack_id)
        self._unstored.setdefault(window, []).append(pack_id)

    def forget(self, window: Window) -> list[row_keys.IdsKey]:
        """Drop a window; return the keys of its stored rows."""
        self.by_window.pop(window, None)
        self._unstored.pop(window, None)
        self._small.pop(window, None)
        return [row_keys.IdsKey(*window, number) for number in self._rows.pop(window, [])]

    def drain(self, position: int) -> tuple[list[row_keys.IdsKey], dict[row_keys.IdsKey, bytes]]:
        """Keys of rows to delete, then the ids to store, joined, by key: those added since the last call.

        Parameters
        ----------
        position : of the ledger. It grows by at least one for each id, so no two rows get the same key.
        """
        replaced: list[row_keys.IdsKey] = []
        drained: dict[row_keys.IdsKey, bytes] = {}
        for window, fresh in self._unstored.items():
            ids = b"".join(fresh)
            gone, ids = self._merged(window, ids)
            replaced += gone
            row_bytes = row_values.IDS_PER_ROW * row_values.ID_BYTES
            for number, first in enumerate(range(0, len(ids), row_bytes)):
                unique = position - 1 - number
                self._rows.setdefault(window, []).append(unique)
                drained[row_keys.IdsKey(*window, unique)] = ids[first : first + row_bytes]
        self._unstored = {}
        return replaced, drained

    def _merged(self, window: Window, ids: bytes) -> tuple[list[row_keys.IdsKey], bytes]:
        """Ids to store, merged with those of the small rows before them once there are enough.

        Returns
        -------
        Keys of the rows to delete, and the ids.
        """
        small = [*self._small.pop(window, ()), ids]
        merged = b"".join(small)
        if (
            len(small) < MERGED_ROWS
            and len(merged) < min(MERGED_IDS, row_values.IDS_PER_ROW) * row_values.ID_BYTES
        ):
            self._small[window] = small
            return [], ids
        stored = self._rows.get(window, [])
        kept = len(stored) - len(small) + 1
        gone = [row_keys.IdsKey(*window, unique) for unique in stored[kept:]]
        del stored[kept:]
        return gone, merged

    def restore(self, stored: Mapping[row_keys.IdsKey, bytes]) -> None:
        """Load stored rows; RowError if one cannot be read."""
        found: dict[Window, list[memoryview]] = {}
        for key, value in stored.items():
            window = (key.fingerprint, key.window_start)
            found.setdefault(window, []).append(row_values.decode_ids(value))
            self._rows.setdefault(window, []).append(key.number)
        self.by_window = {window: PackIds.of(ids) for window, ids in found.items()}
