"""What is stored of each client: its CLIENT_BALANCE, its OPEN windows, SHOWN if that is limited, as bytes.

A row's key is 8 of the 16 bytes of the client's keyed hash. Among a million clients two share a row with
probability 3e-8; they would share one budget, which only over-counts.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.producers.budget.charging import OPEN, SHOWN, Bools, ClientRows, Ints
from deniable.producers.budget.client_balance import CLIENT_BALANCE

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
    unpacked = _unpacked(spent)
    balances[found] = unpacked.balances
    shown = np.zeros(clients, SHOWN)
    shown[found[unpacked.has_shown]] = unpacked.shown
    return ClientRows(balances, unpacked.windows, np.repeat(found, unpacked.counts), shown)


def balances_of(spent: Sequence[bytes]) -> NDArray[np.void]:
    """Return the balances in rows' stored bytes, CLIENT_BALANCE (m,).

    Raises
    ------
    ValueError if bytes are of a length that is never written.
    """
    return _unpacked(spent).balances


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
        parts = [rows.balances[same], rows.windows[places]]
        if rows.shown is not None:
            parts.append(rows.shown[same])
        yield (
            same,
            np.hstack([np.ascontiguousarray(each).view(np.uint8).reshape(len(same), -1) for each in parts]),
        )


class _Unpacked(NamedTuple):
    """The parts of m rows: CLIENT_BALANCE (m,), OPEN (e,), SHOWN (s,) of the rows that have it.

    And the number of windows of each, int64 (m,), and whether it has SHOWN, bool (m,).
    """

    balances: NDArray[np.void]
    windows: NDArray[np.void]
    shown: NDArray[np.void]
    counts: Ints
    has_shown: Bools


def _unpacked(spent: Sequence[bytes]) -> _Unpacked:
    """Split rows into their parts."""
    sizes = np.fromiter(map(len, spent), np.int64, len(spent)) - CLIENT_BALANCE.itemsize
    # SHOWN is shorter than OPEN, so a row's length tells whether it ends with one.
    counts, rest = np.divmod(sizes, OPEN.itemsize)
    has_shown = rest == SHOWN.itemsize
    if (sizes < 0).any() or rest[~has_shown].any():
        raise ValueError("a row is of a length that is never written")
    part = np.repeat(
        np.tile(np.arange(3), len(spent)),
        np.column_stack([np.full(len(spent), CLIENT_BALANCE.itemsize), sizes - rest, rest]).ravel(),
    )
    joined = np.frombuffer(b"".join(spent), np.uint8)
    balances, windows, shown = (
        joined[part == place].view(kind) for place, kind in enumerate((CLIENT_BALANCE, OPEN, SHOWN))
    )
    return _Unpacked(balances, windows, shown, counts, has_shown)
