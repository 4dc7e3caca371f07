"""The table of one collection with what its clients have spent.

A row's key is 8 of the 16 bytes of the client's keyed hash. Among a million clients two share a row with
probability 3e-8; they would share one budget, which only over-counts.
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
    """Return the keys of clients in the table, int64 (n,), from their keyed hashes, uint8 (n, 16)."""
    return np.ascontiguousarray(clients[:, :KEY_BYTES]).view("<i8").ravel()


class SpendingTable:
    """A row for each client: CLIENT_BALANCE, then its OPEN windows.

    Parameters
    ----------
    store : Store.
    collection : its number in the store.
    """

    def __init__(self, store: Store, collection: int) -> None:
        self._store = store
        # A table's name cannot be a parameter; only an integer is put into these statements.
        name = f"spending_{int(collection)}"
        self._select = f"SELECT key, spent FROM json_each(?) CROSS JOIN {name} ON client = value"  # noqa: S608
        self._replace = (
            f"REPLACE INTO {name}"  # noqa: S608
            " SELECT value, substr(?2, key * ?3 + 1, ?3) FROM json_each(?1)"
        )
        self._scan = f"SELECT spent FROM {name}"  # noqa: S608
        self._make = f"CREATE TABLE IF NOT EXISTS {name} (client INTEGER PRIMARY KEY, spent BLOB NOT NULL)"

    def make(self) -> None:
        """Create the table in the present transaction, unless it exists."""
        self._store.rows(self._make)

    def load(self, keys: Ints, terms: int) -> ClientRows:
        """Load clients' rows; a new client has spent nothing, under the present terms.

        Parameters
        ----------
        keys : int64 (m,), ascending: neighbours are in the same pages.
        terms : number of the present terms.

        Raises
        ------
        StoreError if the store cannot be read, or a row is of a length that is never written.
        """
        places, spent = [], []
        for place, blob in self._store.each(self._select, _listed(keys)):
            places.append(place)
            spent.append(blob)
        balances = np.zeros(len(keys), CLIENT_BALANCE)
        balances["terms"] = terms
        found = np.array(places, np.int64)
        balances[found], windows, counts = self._unpack(spent)
        return ClientRows(balances, windows, np.repeat(found, counts))

    def save(self, keys: Ints, rows: ClientRows, chosen: Ints) -> None:
        """Replace rows.

        Parameters
        ----------
        keys : int64 (m,).
        rows : of these clients; owners ascending.
        chosen : int64 (c,), indices in [0, m) of the rows to write.
        """
        counts = np.bincount(rows.owners, minlength=len(keys))
        first = np.cumsum(counts) - counts
        for count in np.flatnonzero(np.bincount(counts[chosen])).tolist():
            same = chosen[counts[chosen] == count]
            places = (first[same, np.newaxis] + np.arange(count)).ravel()
            spent = np.hstack(
                [
                    rows.balances[same].view(np.uint8).reshape(len(same), CLIENT_BALANCE.itemsize),
                    rows.windows[places].view(np.uint8).reshape(len(same), count * OPEN.itemsize),
                ]
            )
            self._store.rows(self._replace, _listed(keys[same]), spent.tobytes(), spent.shape[1])

    def balances(self) -> Iterator[NDArray[np.void]]:
        """Yield the balances of all clients, CLIENT_BALANCE (up to SCANNED_ROWS,) at a time.

        Raises
        ------
        StoreError as `load`.
        """
        scanned = self._store.each(self._scan)
        while spent := [blob for (blob,) in islice(scanned, SCANNED_ROWS)]:
            yield self._unpack(spent)[0]

    def _unpack(self, spent: list[bytes]) -> tuple[NDArray[np.void], NDArray[np.void], Ints]:
        """Split rows into CLIENT_BALANCE (m,), OPEN (e,), and each client's number of windows, int64 (m,)."""
        sizes = np.fromiter(map(len, spent), np.int64, len(spent)) - CLIENT_BALANCE.itemsize
        if (sizes < 0).any() or (sizes % OPEN.itemsize).any():
            raise self._store.damaged()
        counts = sizes // OPEN.itemsize
        packed, is_head = np.frombuffer(b"".join(spent), np.uint8), _is_balance(counts)
        return packed[is_head].view(CLIENT_BALANCE), packed[~is_head].view(OPEN), counts


def _listed(keys: Ints) -> str:
    """Return JSON for `json_each`."""
    return msgspec.json.encode(keys.tolist()).decode()


def _is_balance(counts: Ints) -> Bools:
    """Return which bytes of all rows belong to balances, bool; `counts` are open windows, int64 (m,)."""
    sizes = np.column_stack([np.full(len(counts), CLIENT_BALANCE.itemsize), counts * OPEN.itemsize])
    return np.repeat(np.tile([True, False], len(counts)), sizes.ravel())
