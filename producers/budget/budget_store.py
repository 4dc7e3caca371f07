"""Where spending is stored: what `Spending` asks of a store, whichever it is."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.spending_terms import SpendingTerms
from deniable.producers.budget.charging import ClientRows, Ints
from deniable.producers.storage.store import StoreError


class Registered(NamedTuple):
    """The numbers of a collection and of its present terms in a store."""

    collection: int
    terms: int


class BudgetStore(Protocol):
    """The rows of all clients, and the terms under which they were charged. Used by one thread at a time.

    Every method raises StoreError if the store cannot be used, or has content that was never written to it.
    """

    def register(self, terms: Mapping[str, SpendingTerms]) -> dict[str, Registered]:
        """Store the present terms of collections by name, unless they are known, in a transaction.

        Their horizons start at that of other terms with the same fingerprint, whose windows are the same.
        """

    def numbers(self) -> dict[str, int]:
        """Return the number of each collection by name, in the order of first use."""

    def terms(self, collection: int) -> dict[int, SpendingTerms]:
        """Return all terms of a collection, by number."""

    def raise_horizons(self, collection: int, earliest: int) -> dict[int, int]:
        """Raise the horizons of all terms of a collection, by number (see `charging.horizons`).

        Until the present transaction ends, no other charges the collection: call it before `load`.

        Parameters
        ----------
        collection : its number.
        earliest : unix seconds; later horizons stay.
        """

    def load(self, collection: int, keys: Ints, terms: int) -> ClientRows:
        """Load clients' rows; a new client has spent nothing, under the present terms.

        Parameters
        ----------
        collection : its number.
        keys : int64 (m,), ascending: neighbours are in the same pages.
        terms : number of the present terms.
        """

    def save(self, collection: int, keys: Ints, rows: ClientRows, chosen: Ints) -> None:
        """Replace rows in the present transaction.

        Parameters
        ----------
        collection : its number.
        keys : int64 (m,).
        rows : of these clients; owners ascending.
        chosen : int64 (c,), indices in [0, m) of the rows to write.
        """

    def balances(self, collection: int) -> Iterator[NDArray[np.void]]:
        """Yield the balances of all clients, CLIENT_BALANCE, in parts; none where reading all is too much."""

    def damaged(self) -> StoreError:
        """Return the error to raise if the store has content that was never written to it."""
