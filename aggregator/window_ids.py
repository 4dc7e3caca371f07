"""The pack ids of all open windows of a ledger, and how they are stored: at first a row for each checkpoint.

An owner merges its small rows, once: a window of a day would else have 170,000 of them, to be read when its
ledger opens and deleted in one transaction when it closes. Until then their ids are kept as they were stored,
MERGED_IDS of a window at most.
"""

from collections.abc import Mapping

from aggregator import row_keys, rows
from aggregator.pack_ids import PackIds
from aggregator.row_keys import Window

MERGED_ROWS = 64
MERGED_IDS = 1024


class WindowIds:
    """Ids by window. `by_window` is what a pack's id is looked up in."""

    def __init__(self) -> None:
        self.by_window: dict[Window, PackIds] = {}
        self._unstored: dict[Window, list[bytes]] = {}
        self._rows: dict[Window, list[int]] = {}  # the number of each stored row
        self._small: dict[Window, list[bytes]] = {}  # ids of the last of these rows, which are not merged yet

    def add(self, window: Window, pack_id: bytes) -> None:
        """Add an id that the window does not hold yet."""
        self.by_window.setdefault(window, PackIds()).add(pack_id)
        self._unstored.setdefault(window, []).append(pack_id)

    def forget(self, window: Window) -> list[row_keys.IdsKey]:
        """Drop a window; the keys of its stored rows."""
        self.by_window.pop(window, None)
        self._unstored.pop(window, None)
        self._small.pop(window, None)
        return [row_keys.IdsKey(*window, number) for number in self._rows.pop(window, [])]

    def drain(self, position: int) -> tuple[list[row_keys.IdsKey], list[tuple[row_keys.IdsKey, bytes]]]:
        """Rows of the ids that were added since the last call; before them, keys of rows that they replace.

        Parameters
        ----------
        position : of the ledger. It grows by at least one for each id, so no two rows get the same key.
        """
        replaced: list[row_keys.IdsKey] = []
        drained: list[tuple[row_keys.IdsKey, bytes]] = []
        for window, fresh in self._unstored.items():
            ids = b"".join(fresh)
            gone, ids = self._merged(window, ids)
            replaced += gone
            row_bytes = rows.IDS_PER_ROW * rows.ID_BYTES
            for number, first in enumerate(range(0, len(ids), row_bytes)):
                unique = position - 1 - number
                self._rows.setdefault(window, []).append(unique)
                value = rows.encode_ids(ids[first : first + row_bytes])
                drained.append((row_keys.IdsKey(*window, unique), value))
        self._unstored = {}
        return replaced, drained

    def _merged(self, window: Window, ids: bytes) -> tuple[list[row_keys.IdsKey], bytes]:
        """Ids to be stored, those of the small rows before them included if that is enough to merge them.

        Returns
        -------
        Keys of the rows that go, and the ids.
        """
        small = [*self._small.pop(window, ()), ids]
        merged = b"".join(small)
        if len(small) < MERGED_ROWS and len(merged) < min(MERGED_IDS, rows.IDS_PER_ROW) * rows.ID_BYTES:
            self._small[window] = small
            return [], ids
        stored = self._rows.get(window, [])
        kept = len(stored) - len(small) + 1
        gone = [row_keys.IdsKey(*window, unique) for unique in stored[kept:]]
        del stored[kept:]
        return gone, merged

    def restore(self, stored: Mapping[row_keys.IdsKey, bytes]) -> None:
        """Take in stored rows; RowError when one cannot be read."""
        found: dict[Window, list[memoryview]] = {}
        for key, value in stored.items():
            window = (key.fingerprint, key.window_start)
            found.setdefault(window, []).append(rows.decode_ids(value))
            self._rows.setdefault(window, []).append(key.number)
        self.by_window = {window: PackIds.of(ids) for window, ids in found.items()}
