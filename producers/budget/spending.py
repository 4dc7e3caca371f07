"""Charge clients for their reports, before anything is sent; never refund.

The name of a collection is its identity. When its parameters (and so its fingerprint) change, or the changes
of buckets that its budget covers, earlier spending is carried over as epsilon at delta = 0 (see
`client_balance`), and changes are counted from 0. Each row names its terms, so producers with old and new
parameters may run at the same time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.allowance import Allowance
from deniable.config.settings.spending_terms import SpendingTerms
from deniable.producers.budget.budget_store import BudgetStore
from deniable.producers.budget.charging import (
    SHOWN,
    ChargeResult,
    ClientRows,
    Ints,
    changes,
    charge_rows,
    hold_buckets,
    horizons,
)
from deniable.producers.budget.client_balance import bring_up_to_date, is_continued
from deniable.producers.budget.limits import CollectionLimits
from deniable.producers.budget.statement import Spent, spent_in
from deniable.producers.budget.stored_rows import keys_of


@dataclass(frozen=True)
class _CollectionSpending:
    """One collection: its limits, and its numbers in the store."""

    limits: CollectionLimits
    number: int
    terms: int


class Spending:
    """Charges the clients of some collections.

    Parameters
    ----------
    budgets : BudgetStore, which has the rows of all clients.
    allowances : Allowance of each collection, names distinct.
    now : unix seconds.

    Raises
    ------
    StoreError if the store cannot be written.
    """

    def __init__(self, budgets: BudgetStore, allowances: Iterable[Allowance], now: float) -> None:
        self._limits = {each.collection.name: CollectionLimits(each) for each in allowances}
        self.reopen(budgets, now)

    def reopen(self, budgets: BudgetStore, now: float) -> None:
        """Continue with the same store after it was reopened; limits are kept.

        Parameters
        ----------
        budgets, now : as for the class.

        Raises
        ------
        StoreError if the store cannot be written or read.
        """
        self._budgets = budgets
        registered = budgets.register({name: each.allowance.terms for name, each in self._limits.items()})
        self._entries = {
            name: _CollectionSpending(limits, *registered[name]) for name, limits in self._limits.items()
        }
        for entry in self._entries.values():
            if not entry.limits.is_scanned:
                for balances in budgets.balances(entry.number):
                    entry.limits.note(self._present(entry, balances, now))
                entry.limits.is_scanned = True

    def charge(
        self,
        name: str,
        clients: NDArray[np.uint8],
        windows: Ints,
        now: float,
        buckets: Ints | None = None,
    ) -> ChargeResult:
        """Charge reports in the order given, in the present transaction; refuse those over a limit.

        Parameters
        ----------
        name : of the collection.
        clients : uint8 (n, 16), keyed hashes.
        windows : int64 (n,), start of each report's window, unix seconds.
        now : unix seconds.
        buckets : int64 (n,), from 1, the bucket of each report, if changes of them are limited: in whatever
            numbers, as long as a client's different buckets have different ones.

        Raises
        ------
        StoreError if the store cannot be written; UnknownLimitError if a limit must be computed first, with
        the store closed: then charge the same reports again.
        """
        entry = self._entries[name]
        allowance = entry.limits.allowance
        earliest = int(now) - allowance.collection.window_seconds - allowance.collection.grace_seconds
        horizon = self._budgets.raise_horizons(entry.number, earliest)[entry.terms]
        entry.limits.seconds_ahead = horizon - earliest
        order, keys, owners = _by_client(keys_of(clients))
        rows = self._budgets.load(entry.number, keys, entry.terms)
        terms = self._terms(entry, rows.balances)
        rows.shown = None if allowance.changes is None else _still_shown(rows, entry.terms, terms)
        rows.balances = bring_up_to_date(rows.balances, now, entry.terms, terms)
        charged, rows = charge_rows(
            rows,
            owners,
            windows[order],
            entry.limits.limits(rows.balances["carried"]),
            allowance.reports_per_window,
            horizons(rows, earliest, horizon),
            earliest,
        )
        if buckets is not None and rows.shown is not None and allowance.changes is not None:
            taken = order[charged.accepted]
            held = buckets.copy()
            held[taken], rows.shown = hold_buckets(
                rows.shown, owners[charged.accepted], buckets[taken], allowance.changes
            )
            buckets = held
        changed = np.flatnonzero(np.bincount(owners[charged.accepted]))
        self._budgets.save(entry.number, keys, rows, changed)
        entry.limits.note(rows.balances[changed])
        decisions = np.empty_like(charged.decisions)
        decisions[order] = charged.decisions
        return ChargeResult(decisions, buckets)

    def spent(self, client: NDArray[np.uint8], now: float) -> dict[str, Spent]:
        """Return what a client has spent, by collection.

        Parameters
        ----------
        client : uint8 (16,), keyed hash.
        now : unix seconds.
        """
        return {
            name: spent_in(self._budgets, entry.number, entry.limits.allowance, client, now)
            for name, entry in self._entries.items()
        }

    def used(self, now: float) -> dict[str, float]:
        """Return the largest share that a client has spent in this period, by collection with a budget.

        Covers all clients in a folder's store at the start, and then those charged here: other processes
        report theirs. Includes transactions that were rolled back.
        """
        return {
            name: limits.largest_ratio(now)
            for name, limits in self._limits.items()
            if limits.allowance.budget is not None
        }

    def warnings(self) -> list[str]:
        """Return warnings about clocks, each only once."""
        warnings = (limits.warning() for limits in self._limits.values())
        return [each for each in warnings if each is not None]

    def _present(
        self, entry: _CollectionSpending, balances: NDArray[np.void], now: float
    ) -> NDArray[np.void]:
        return bring_up_to_date(balances, now, entry.terms, self._terms(entry, balances))

    def _terms(self, entry: _CollectionSpending, balances: NDArray[np.void]) -> dict[int, SpendingTerms]:
        terms = self._budgets.terms(entry.number)
        if not terms.keys() >= set(balances["terms"].tolist()):
            raise self._budgets.damaged()
        return terms


def _still_shown(rows: ClientRows, number: int, terms: Mapping[int, SpendingTerms]) -> NDArray[np.void]:
    """Return what clients have shown under the present terms, SHOWN (m,)."""
    shown = np.zeros(len(rows.balances), SHOWN) if rows.shown is None else rows.shown.copy()
    shown[~is_continued(rows.balances, number, terms)] = 0
    return shown


def _by_client(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Return reports' order by client, stable; the distinct keys, ascending; the client of each report.

    Parameters
    ----------
    keys : int64 (n,), of each report's client.

    Returns
    -------
    int64 (n,); int64 (m,); int64 (n,), in [0, m), in that order.
    """
    order = np.argsort(keys, kind="stable")
    is_first = changes(keys[order])
    return order, keys[order][is_first], np.cumsum(is_first) - 1
