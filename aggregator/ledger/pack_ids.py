"""The pack ids of all open windows of a ledger, in memory and as stored rows.

In memory an id takes 16 to 24 bytes, in an `IdSet`; the newest single ones are in a small set.

Each checkpoint adds its new ids to the last row, until that has REWRITTEN_IDS, and small rows are merged
once: a window of a day would otherwise have 170,000 rows, to be read when its ledger opens and deleted in one
transaction when it closes; and each deleted row leaves a tombstone, which is read for a day. Until they are
merged, their ids stay in memory as stored, at most MERGED_IDS per window.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Self

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_keys import Window
from deniable.protocol.uploads.id_set import Halves, IdSet

ID_BYTES = 16
HALF_BYTES = 8
FRESH_IDS = 1 << 12
LEAST_FRESH_IDS = 1 << 6
RESTORED_IDS = 1 << 20  # that are sorted at once
FEW_IDS = 12  # are looked up and added faster one by one
REWRITTEN_IDS = 64  # a kilobyte that is written again at most
MERGED_ROWS = 64
MERGED_IDS = 1024


class PackIds:
    """A set of ids that only grows; one by one, or many at once as the two halves of each, uint64.

    Costs 16 to 24 bytes per id, and a Python object for an eighth of those added one by one, at most
    FRESH_IDS.
    """

    __slots__ = ("_fresh", "_most_fresh", "_settled")

    def __init__(self) -> None:
        self._settled: IdSet | None = None  # an empty one takes 4 KiB, and most windows are small
        self._fresh: set[bytes] = set()
        self._most_fresh = LEAST_FRESH_IDS

    def __contains__(self, pack_id: bytes) -> bool:
        if pack_id in self._fresh:
            return True
        return self._settled is not None and self._settled.holds_one(
            int.from_bytes(pack_id[:HALF_BYTES], "little"), int.from_bytes(pack_id[HALF_BYTES:], "little")
        )

    def __iter__(self) -> Iterator[bytes]:
        yield from self._fresh
        for low, high in self._settled.runs() if self._settled else ():
            yield from _each(low, high)

    def __len__(self) -> int:
        return len(self._fresh) + (len(self._settled) if self._settled else 0)

    def add(self, pack_id: bytes) -> None:
        """Add a new id of 16 bytes."""
        self._fresh.add(pack_id)
        if len(self._fresh) >= self._most_fresh:
            self._settle()

    def holds(self, low: Halves, high: Halves) -> npt.NDArray[np.bool_]:
        """Whether each id was added, bool (n,); faster if `low` is sorted."""
        self._settle()
        if self._settled is None:
            return np.zeros(len(low), np.bool_)
        return self._settled.holds(low, high)

    def add_many(self, low: Halves, high: Halves) -> None:
        """Add new ids, `low` ascending."""
        self._settle_run(low, high)

    @classmethod
    def of(cls, stored: Sequence[memoryview]) -> Self:
        """Build a set from ids given in parts, RESTORED_IDS at a time."""
        ids, waiting, count = cls(), [], 0
        for part in stored:
            waiting.append(part)
            count += len(part) // ID_BYTES
            if count >= RESTORED_IDS:
                ids._settle_run(*_sorted(b"".join(waiting)))
                waiting, count = [], 0
        if waiting:
            ids._settle_run(*_sorted(b"".join(waiting)))
        return ids

    def _settle_run(self, low: Halves, high: Halves) -> None:
        if self._settled is None:
            self._settled = IdSet()
        self._settled.add(low, high)

    def _settle(self) -> None:
        """Move the fresh ids into the set of sorted runs."""
        if not self._fresh:
            return
        fresh, self._fresh = self._fresh, set()
        self._settle_run(*_sorted(b"".join(fresh)))
        # A share of all: many windows of a few thousand ids each would else hold them in sets.
        self._most_fresh = min(FRESH_IDS, max(LEAST_FRESH_IDS, len(self) // 8))


def joined(low: Halves, high: Halves) -> bytes:
    """Ids one behind the other, as they are stored."""
    return np.stack((low, high), axis=1).tobytes()


def _each(low: Halves, high: Halves) -> Iterator[bytes]:
    data = joined(low, high)
    return (data[first : first + ID_BYTES] for first in range(0, len(data), ID_BYTES))


def _sorted(ids: bytes) -> tuple[Halves, Halves]:
    """The halves of joined ids, sorted by the lower one."""
    halves = np.frombuffer(ids, "<u8").reshape(-1, 2)
    order = halves[:, 0].argsort()
    return halves[order, 0], halves[order, 1]


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

    def add_many(self, window: Window, ids: bytes, low: Halves, high: Halves) -> None:
        """Add new ids to a window.

        Parameters
        ----------
        window : of all of them.
        ids : one behind the other.
        low, high : their halves, uint64, `low` ascending.
        """
        known = self.by_window.get(window)
        if known is None:
            known = self.by_window[window] = PackIds()
        if len(low) <= FEW_IDS:
            for first in range(0, len(ids), ID_BYTES):
                known.add(ids[first : first + ID_BYTES])
        else:
            known.add_many(low, high)
        self._unstored.setdefault(window, []).append(ids)

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
            reused, before = self._last_row(window)
            gone, ids = self._merged(window, before + b"".join(fresh))
            replaced += gone
            row_bytes = row_values.IDS_PER_ROW * row_values.ID_BYTES
            for number, first in enumerate(range(0, len(ids), row_bytes)):
                unique = position - 1 - number if number or reused is None else reused
                self._rows.setdefault(window, []).append(unique)
                drained[row_keys.IdsKey(*window, unique)] = ids[first : first + row_bytes]
        self._unstored = {}
        return replaced, drained

    def _last_row(self, window: Window) -> tuple[int | None, bytes]:
        """Number and ids of the last row if it is to be written again, longer; None and none otherwise."""
        small = self._small.get(window)
        if not small or len(small[-1]) >= REWRITTEN_IDS * row_values.ID_BYTES:
            return None, b""
        return self._rows[window].pop(), small.pop()

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
