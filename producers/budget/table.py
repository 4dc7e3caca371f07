"""The table of one collection in which what its clients have spent is kept.

A client is known by 8 of the 16 bytes of its keyed hash, the key of its row. Of a million clients two share a
row with probability 3e-8; they would share one budget, which only over-counts.
"""

from collections.abc import Iterator
from itertools import islice

import msgspec
import numpy as np
from numpy.typing import NDArray

from producers.budget.charging import OPEN, Bools, ClientRows, Ints
from producers.budget.client_balance import CLIENT_BALANCE
from producers.storage.store import Store

KEY_BYTES = 8
SCANNED_ROWS = 65_536


def keys_of(clients: NDArray[np.uint8]) -> Ints:
    """Keys of clients in the table, int64 (n,), from their keyed hashes, uint8 (n, 16)."""
    return np.ascontiguousarray(clients[:, :KEY_BYTES]).view("<i8").ravel()


class SpendingTable:
    """A row for each client, HEAD and then its OPEN windows.

    Parameters
    ----------
    store : Store.
    collection : its number in the store.
    """

    def __init__(self, store: Store, collection: int) -> None:
        self._store = store
        # A table's name cannot be a parameter; an integer is all that is put into these statements.
        name = f"spending_{int(collection)}"
        self._select = f"SELECT key, spent FROM json_each(?) CROSS JOIN {name} ON client = value"  # noqa: S608
        self._replace = (
            f"REPLACE INTO {name}"  # noqa: S608
            " SELECT value, substr(?2, key * ?3 + 1, ?3) FROM json_each(?1)"
        )
        self._scan = f"SELECT spent FROM {name}"  # noqa: S608
        self._make = f"CREATE TABLE IF NOT EXISTS {name} (client INTEGER PRIMARY KEY, spent BLOB NOT NULL)"

    def make(self) -> None:
        """Make it in the present transaction, unless it is there."""
        self._store.rows(self._make)

    def load(self, keys: Ints, terms: int) -> ClientRows:
        """What is kept of clients; of one that is not there yet, nothing spent, under the present terms.

        Parameters
        ----------
        keys : int64 (m,), rising: neighbours lie in the same pages.
        terms : number of the present ones.

        Raises
        ------
        StoreError if the store cannot be read, or a row is of a length that is never written.
        """
        places, spent = [], []
        for place, blob in self._store.each(self._select, _listed(keys)):
            places.append(place)
            spent.append(blob)
        heads = np.zeros(len(keys), CLIENT_BALANCE)
        heads["terms"] = terms
        found = np.array(places, np.int64)
        heads[found], windows, counts = self._unpack(spent)
        return ClientRows(heads, windows, np.repeat(found, counts))

    def save(self, keys: Ints, rows: ClientRows, chosen: Ints) -> None:
        """Write rows in place of what they were.

        Parameters
        ----------
        keys : int64 (m,).
        rows : of these clients; owners rising.
        chosen : int64 (c,), the places in [0, m) of those to write.
        """
        counts = np.bincount(rows.owners, minlength=len(keys))
        first = np.cumsum(counts) - counts
        for count in np.flatnonzero(np.bincount(counts[chosen])).tolist():
            same = chosen[counts[chosen] == count]
            places = (first[same, np.newaxis] + np.arange(count)).ravel()
            spent = np.hstack(
                [
                    rows.heads[same].view(np.uint8).reshape(len(same), CLIENT_BALANCE.itemsize),
                    rows.windows[places].view(np.uint8).reshape(len(same), count * OPEN.itemsize),
                ]
            )
            self._store.rows(self._replace, _listed(keys[same]), spent.tobytes(), spent.shape[1])

    def heads(self) -> Iterator[NDArray[np.void]]:
        """What is kept of all clients but their windows, HEAD (up to SCANNED_ROWS,) at a time.

        Raises
        ------
        StoreError as `load`.
        """
        scanned = self._store.each(self._scan)
        while spent := [blob for (blob,) in islice(scanned, SCANNED_ROWS)]:
            yield self._unpack(spent)[0]

    def _unpack(self, spent: list[bytes]) -> tuple[NDArray[np.void], NDArray[np.void], Ints]:
        """HEAD (m,), OPEN (e,), and how many of these each client has, int64 (m,)."""
        sizes = np.fromiter(map(len, spent), np.int64, len(spent)) - CLIENT_BALANCE.itemsize
        if (sizes < 0).any() or (sizes % OPEN.itemsize).any():
            raise self._store.damaged()
        counts = sizes // OPEN.itemsize
        packed, is_head = np.frombuffer(b"".join(spent), np.uint8), _is_head(counts)
        return packed[is_head].view(CLIENT_BALANCE), packed[~is_head].view(OPEN), counts


def _listed(keys: Ints) -> str:
    """JSON, as `json_each` takes it."""
    return msgspec.json.encode(keys.tolist()).decode()


def _is_head(counts: Ints) -> Bools:
    """Of the bytes of all rows, which belong to heads: bool, for int64 (m,) open windows of each client."""
    sizes = np.column_stack([np.full(len(counts), CLIENT_BALANCE.itemsize), counts * OPEN.itemsize])
    return np.repeat(np.tile([True, False], len(counts)), sizes.ravel())
