"""What is stored of each client: its CLIENT_BALANCE, then its OPEN windows, as bytes.

A row's key is 8 of the 16 bytes of the client's keyed hash. Among a million clients two share a row with
probability 3e-8; they would share one budget, which only over-counts.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from producers.budget.charging import OPEN, Bools, ClientRows, Ints
from producers.budget.client_balance import CLIENT_BALANCE

KEY_BYTES = 8


def keys_of(clients: NDArray[np.uint8]) -> Ints:
    """Return the keys of clients' rows, int64 (n,), from their keyed hashes, uint8 (n, 16)."""
    return np.ascontiguousarray(clients[:, :KEY_BYTES]).view("<i8").ravel()


def rows_of(clients: int, terms: int, places: Sequence[int], spent: Sequence[bytes]) -> ClientRows:
    """Return the rows of m clients; one without stored bytes has spent nothing, under the present terms.

    Parameters
    ----------
    clients : m.
    terms : number of the present terms.
    places : of the clients found, in [0, m).
    spent : stored bytes of each of these.

    Raises
    ------
    ValueError if bytes are of a length that is never written.
    """
    balances = np.zeros(clients, CLIENT_BALANCE)
    balances["terms"] = terms
    found = np.array(places, np.int64)
    balances[found], windows, counts = _unpacked(spent)
    return ClientRows(balances, windows, np.repeat(found, counts))


def balances_of(spent: Sequence[bytes]) -> NDArray[np.void]:
    """Return the balances in rows' stored bytes, CLIENT_BALANCE (m,).

    Raises
    ------
    ValueError if bytes are of a length that is never written.
    """
    return _unpacked(spent)[0]


def packed(rows: ClientRows, chosen: Ints) -> Iterator[tuple[Ints, NDArray[np.uint8]]]:
    """Yield the bytes to store of chosen clients, together for clients with the same number of windows.

    Parameters
    ----------
    rows : ClientRows of m clients, owners ascending.
    chosen : int64 (c,), clients in [0, m).

    Yields
    ------
    Clients, int64 (s,), and the bytes of each, uint8 (s, length).
    """
    counts = np.bincount(rows.owners, minlength=len(rows.balances))
    first = np.cumsum(counts) - counts
    for count in np.flatnonzero(np.bincount(counts[chosen])).tolist():
        same = chosen[counts[chosen] == count]
        places = (first[same, np.newaxis] + np.arange(count)).ravel()
        yield (
            same,
            np.hstack(
                [
                    rows.balances[same].view(np.uint8).reshape(len(same), CLIENT_BALANCE.itemsize),
                    rows.windows[places].view(np.uint8).reshape(len(same), count * OPEN.itemsize),
                ]
            ),
        )


def _unpacked(spent: Sequence[bytes]) -> tuple[NDArray[np.void], NDArray[np.void], Ints]:
    """Split rows into CLIENT_BALANCE (m,), OPEN (e,), and each client's number of windows, int64 (m,)."""
    sizes = np.fromiter(map(len, spent), np.int64, len(spent)) - CLIENT_BALANCE.itemsize
    if (sizes < 0).any() or (sizes % OPEN.itemsize).any():
        raise ValueError("a row is of a length that is never written")
    counts = sizes // OPEN.itemsize
    joined, is_head = np.frombuffer(b"".join(spent), np.uint8), _is_balance(counts)
    return joined[is_head].view(CLIENT_BALANCE), joined[~is_head].view(OPEN), counts


def _is_balance(counts: Ints) -> Bools:
    """Return which bytes of all rows belong to balances, bool; `counts` are open windows, int64 (m,)."""
    sizes = np.column_stack([np.full(len(counts), CLIENT_BALANCE.itemsize), counts * OPEN.itemsize])
    return np.repeat(np.tile([True, False], len(counts)), sizes.ravel())
