"""Read what clients have spent, without changing it.

SQLite still maintains a folder's file: the last process to close it moves its log into it.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.allowance import Allowance
from deniable.config.settings.budget_database import BudgetDatabase
from deniable.config.settings.spending_terms import ENDLESS, SpendingTerms
from deniable.estimators.mechanisms.directed_rounding import sum_above
from deniable.producers.budget.budget_store import BudgetStore
from deniable.producers.budget.client_balance import bring_up_to_date
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.stored_rows import keys_of
from deniable.producers.randomization.prf import ClientKeys
from deniable.producers.storage.store import Store, StoreError, check_identity
from deniable.protocol.secrets.secret import STORE_NAME, Secret, read_secret

# Terms of a collection of which only the cost is known; stores never use these numbers of terms.
_FORGOTTEN = SpendingTerms(b"", ENDLESS, 0.0, 0.0)
_PRESENT = 0


@dataclass(frozen=True)
class Spent:
    """What one client has spent in one collection, or in several together.

    Parameters
    ----------
    reports, epsilon : in the present period; epsilon while its value stays the same under the present
        parameters. What was spent under earlier ones counts whatever its values did.
    lifetime_reports, lifetime_epsilon : the same, since it first reported.
    delta : at which all epsilons hold.
    any_epsilon, lifetime_any_epsilon : whatever its values did; inf if that is not known.

    All epsilons are rounded up and include what was spent under earlier parameters; the numbers of reports do
    not.
    """

    reports: int = 0
    epsilon: float = 0.0
    lifetime_reports: int = 0
    lifetime_epsilon: float = 0.0
    delta: float = 0.0
    any_epsilon: float = 0.0
    lifetime_any_epsilon: float = 0.0


class Statements:
    """Reads what clients have spent, also while producers run. A context manager, which closes the store.

    Parameters
    ----------
    budgets : BudgetStore, open.
    secret : of its producers.
    allowances : the collections of their configuration.
    close : closes the store.
    """

    def __init__(
        self,
        budgets: BudgetStore,
        secret: Secret,
        allowances: Iterable[Allowance],
        close: Callable[[], None],
    ) -> None:
        self._budgets = budgets
        self._client_keys = ClientKeys(secret)
        self._allowances = {each.collection.name: each for each in allowances}
        self._close = close

    @classmethod
    def in_folder(cls, data_dir: Path, secret_file: Path, allowances: Iterable[Allowance]) -> Self:
        """Open the store in the folder of producers.

        Raises
        ------
        StoreError if no producer has used the folder, or its store cannot be read; SecretError if the secret
        cannot be read, or is not that of the store.
        """
        path = data_dir / STORE_NAME
        unused = StoreError(
            f"store {path}: there is none; no producer has used this folder: run one, or name another folder "
            "(--data-dir)"
        )
        if not (path.exists() and path.stat().st_size):  # Store would initialize an empty file
            raise unused
        secret = read_secret(secret_file)
        store = Store(data_dir)
        try:
            if not store.rows("SELECT 1 FROM identity"):
                raise unused
            check_identity(store, secret)
        except BaseException:
            store.close()
            raise
        return cls(LocalBudgets(store), secret, allowances, store.close)

    @classmethod
    def in_database(
        cls, database: BudgetDatabase, secret_file: Path, allowances: Iterable[Allowance]
    ) -> Self:
        """Connect to the database of producers.

        Raises
        ------
        Like `in_folder`, for a database.
        """
        secret = read_secret(secret_file)
        budgets = PostgresBudgets(database, secret, is_only_read=True)
        return cls(budgets, secret, allowances, budgets.close)

    def of(self, client: str, now: float) -> dict[str, Spent]:
        """Return what a client has spent, by collection: configured ones first, then others in the store.

        A collection that is no longer configured has no periods: for it, the figures cover its whole
        lifetime.

        Parameters
        ----------
        client : its id.
        now : unix seconds.

        Raises
        ------
        StoreError if the store cannot be read.
        """
        key = self._client_keys.of([client])[0]
        numbers = self._budgets.numbers()
        return {
            name: spent_in(self._budgets, numbers[name], self._allowances.get(name), key, now)
            if name in numbers
            else Spent(delta=self._allowances[name].delta)
            for name in [*self._allowances, *(each for each in numbers if each not in self._allowances)]
        }

    def close(self) -> None:
        """Close the store."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def spent_in(
    budgets: BudgetStore, number: int, allowance: Allowance | None, client: NDArray[np.uint8], now: float
) -> Spent:
    """Return what a client has spent in one collection.

    Parameters
    ----------
    budgets : BudgetStore.
    number : of the collection, in the store.
    allowance : the present one; None for a removed collection, which ignores periods and report counts.
    client : uint8 (16,), keyed hash.
    now : unix seconds.
    """
    rows = budgets.load(number, keys_of(client[np.newaxis]), _PRESENT)
    known = budgets.terms(number)
    terms = known | {_PRESENT: allowance.terms if allowance else _FORGOTTEN}
    (balance,) = bring_up_to_date(rows.balances, now, _PRESENT, terms)
    # Earlier releases carried what memoized reports cost about one value.
    is_old = any(not each.is_memoized and math.isfinite(each.epsilon_inf) for each in known.values())
    return _spent(balance, allowance, is_old and rows.balances["carried_lifetime"][0] > 0)


def total(spent: Iterable[Spent]) -> Spent:
    """Add up what one client has spent in several collections.

    A loss of epsilon_1 at delta_1 and one of epsilon_2 at delta_2 compose to epsilon_1 + epsilon_2 at
    delta_1 + delta_2, because collections are randomized independently.

    Source: sequential composition, Dwork and Roth, "The algorithmic foundations of differential privacy",
    2014, theorem 3.16.
    """
    each = list(spent)
    return Spent(
        sum(one.reports for one in each),
        sum_above(*(one.epsilon for one in each)),
        sum(one.lifetime_reports for one in each),
        sum_above(*(one.lifetime_epsilon for one in each)),
        sum_above(*(one.delta for one in each)),
        sum_above(*(one.any_epsilon for one in each)),
        sum_above(*(one.lifetime_any_epsilon for one in each)),
    )


def _spent(balance: np.void, allowance: Allowance | None, is_unknown: bool) -> Spent:
    """State a balance; `is_unknown` if what was carried may hold for one value alone."""
    carried, lifetime = float(balance["carried"]), float(balance["carried_lifetime"])
    any_carried, any_lifetime = (
        math.inf if is_unknown and each > 0 else each for each in (carried, lifetime)
    )
    if allowance is None:
        return Spent(0, carried, 0, lifetime, 0.0, any_carried, any_lifetime)
    now, ever = int(balance["reports"]), int(balance["lifetime"])
    return Spent(
        now,
        sum_above(carried, allowance.epsilon(now, "unchanged")),
        ever,
        sum_above(lifetime, allowance.epsilon(ever, "unchanged")),
        allowance.delta,
        sum_above(any_carried, allowance.epsilon(now, "any")),
        sum_above(any_lifetime, allowance.epsilon(ever, "any")),
    )
