"""Charge clients of one or more collections, in a store that tests reopen: SQLite or PostgreSQL."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.directed_rounding import sum_above
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.producers.budget.limits import UnknownLimitError
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.postgres.budgets import PostgresBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.storage.store import Store
from tests.support.producers.spending_model import SpendingModel

DAY = 86400
NOON = 20_000 * DAY + DAY // 2
KRR_MECHANISM = KRR.from_epsilon(100, 1.0)


def allowance(
    mechanism=KRR_MECHANISM,
    budget=(4.0, DAY),
    reports_per_window=1,
    memoize=False,
    name="answers",
    window_seconds=60,
):
    collection = Collection(name, mechanism, memoize=memoize, window_seconds=window_seconds, grace_seconds=30)
    values = "unchanged" if budget is None or len(budget) < 3 else budget[2]
    kept = None if budget is None else Budget(budget[0], 1e-6, budget[1], values=values)
    return Allowance(collection, kept, reports_per_window)


def clients_of(numbers):
    """Keyed hashes of clients with these numbers; the first 8 bytes differ, the sign bit included."""
    keys = np.zeros((len(numbers), 2), "<u8")
    keys[:, 0] = np.array(numbers, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return keys.view(np.uint8)


def window_of(now):
    return int(now) // 60 * 60


class Charges:
    """Charges in the SQLite store of a folder."""

    def __init__(self, folder, *allowances, now=NOON):
        self.folder = folder
        self.store = None
        self.open(*allowances, now=now)

    def open(self, *allowances, now=NOON):
        self.close()
        self.spending = Spending(self._opened(), allowances, now)

    def _opened(self):
        self.store = Store(self.folder)
        return LocalBudgets(self.store)

    def close(self):
        if self.store is not None:
            self.store.close()

    def charge(self, numbers, now=NOON, windows=None, name="answers", buckets=None):
        windows = np.full(len(numbers), window_of(now)) if windows is None else np.array(windows, np.int64)
        while True:
            try:
                with self.store.transaction():
                    return self.spending.charge(name, clients_of(numbers), windows, now, buckets)
            except UnknownLimitError as unknown:
                unknown.find()

    def spend(self, number, reports, now=NOON):
        """Report for one client in as many windows, all open; return how many were accepted."""
        windows = window_of(now) + 60 * np.arange(reports)
        return int(self.charge([number] * reports, now, windows).accepted.sum())


class PostgresCharges(Charges):
    """Charges in PostgreSQL.

    Parameters
    ----------
    database : BudgetDatabase.
    secret : of its producers.
    """

    def __init__(self, database, secret, *allowances, now=NOON):
        self._database, self._secret = database, secret
        super().__init__(None, *allowances, now=now)

    def _opened(self):
        self.store = PostgresBudgets(self._database, self._secret)
        return self.store


ALLOWANCES = [
    allowance(*each)
    for each in product(
        [KRR_MECHANISM, KRR.from_epsilon(100, 0.9), LongitudinalKRR.from_epsilons(10, 3.0, 1.0)],
        [(4.0, DAY), (6.0, 5 * DAY), None],
        [1, 2],
    )
] + [allowance(window_seconds=3600, reports_per_window=2)]
REPORTS = st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 4)), min_size=1, max_size=12)
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 45, 60, 200, 4000, DAY, 6 * DAY, -1, -90, -DAY]),
        st.integers(0, len(ALLOWANCES) - 1),
        st.booleans(),
        REPORTS,
    ),
    max_size=10,
)


def limit(rule, carried):
    return int(rule.limits(rule.levels(np.array([carried])))[0])


def check_against_model(charges, steps):
    """Charge as STEPS say, beginning with the first of ALLOWANCES; compare each outcome with the model's."""
    model, now, rule = SpendingModel(limit), NOON, ALLOWANCES[0]
    model.use(rule)
    for seconds, index, is_changed, reports in steps:
        now += seconds
        if is_changed:
            rule = ALLOWANCES[index]
            model.use(rule)
            charges.open(rule, now=now)
        windows = [window_of(now) + 60 * offset for _, offset in reports]
        numbers = [client for client, _ in reports]
        expected = model.charge(rule, list(zip(numbers, windows, strict=True)), now)
        charged = charges.charge(numbers, now, windows)
        assert charged.accepted.tolist() == [each == "accepted" for each in expected]
        for reason in ("over_window", "over_budget", "too_late"):
            assert charged.refused()[reason] == expected.count(reason)
    for client, kept in model.clients.items():
        charges.open(kept.allowance, now=now)
        (spent,) = charges.spending.spent(clients_of([client])[0], now).values()
        assert spent.lifetime_reports == kept.lifetime
        unchanged = kept.allowance.epsilon(kept.lifetime, "unchanged")
        assert spent.lifetime_epsilon == sum_above(kept.carried_lifetime, unchanged)
        free = kept.allowance.epsilon(kept.lifetime, "any")
        assert spent.lifetime_any_epsilon == sum_above(kept.carried_lifetime, free)
