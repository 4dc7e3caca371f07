"""The pack ids of all open windows of a ledger, and how they are stored: a few rows for each window."""

from collections.abc import Mapping

from aggregator import row_keys, rows
from aggregator.pack_ids import PackIds
from aggregator.row_keys import Window


class WindowIds:
    """Ids by window. `by_window` is what a pack's id is looked up in."""

    def __init__(self) -> None:
        self.by_window: dict[Window, PackIds] = {}
        self._unstored: dict[Window, list[bytes]] = {}
        self._rows: dict[Window, list[int]] = {}  # the first_offset of each stored row

    def add(self, window: Window, pack_id: bytes) -> None:
        """Add an id that the window does not hold yet."""
        self.by_window.setdefault(window, PackIds()).add(pack_id)
        self._unstored.setdefault(window, []).append(pack_id)

    def forget(self, window: Window) -> list[row_keys.IdsKey]:
        """Drop a window; the keys of its stored rows."""
        self.by_window.pop(window, None)
        self._unstored.pop(window, None)
        return [row_keys.IdsKey(*window, first_offset) for first_offset in self._rows.pop(window, [])]

    def drain(self, position: int) -> list[tuple[row_keys.IdsKey, bytes]]:
        """Rows of the ids that were added since the last call.

        Parameters
        ----------
        position : of the ledger. It grows by at least one for each id, so no two rows get the same key.
        """
        drained = []
        for window, ids in self._unstored.items():
            for first in range(0, len(ids), rows.IDS_PER_ROW):
                unique = position - len(ids) + first
                self._rows.setdefault(window, []).append(unique)
                value = rows.encode_ids(b"".join(ids[first : first + rows.IDS_PER_ROW]))
                drained.append((row_keys.IdsKey(*window, unique), value))
        self._unstored = {}
        return drained

    def restore(self, stored: Mapping[row_keys.IdsKey, bytes]) -> None:
        """Take in stored rows; RowError when one cannot be read."""
        found: dict[Window, list[bytes]] = {}
        for key, value in stored.items():
            window = (key.fingerprint, key.window_start)
            found.setdefault(window, []).append(rows.decode_ids(value))
            self._rows.setdefault(window, []).append(key.first_offset)
        self.by_window = {window: PackIds.of(b"".join(ids)) for window, ids in found.items()}
