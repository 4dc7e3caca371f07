"""The most that one client can have spent so far: never below what producers let it send."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from deniable.config.settings.allowance import UNLIMITED, Allowance, Budget
from deniable.estimators.accounting.accountant import costs
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.budget.exposure import STEPS, exposure, rounded_up
from deniable.producers.budget.lateness import CLOCK_SECONDS, untimely
from deniable.producers.budget.local_budgets import LocalBudgets
from deniable.producers.budget.spending import Spending
from deniable.producers.storage.store import Store
from deniable.protocol.wire import EARLY_SECONDS

DAY = 86_400
NOON = 20_000 * DAY + DAY // 2
WEAK = Collection("answers", KRR.from_epsilon(4, 0.01), window_seconds=60, grace_seconds=30)
BUDGET = Budget(8.0, 1e-6, DAY, values="unchanged")
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)


@pytest.mark.slow
def test_exposure_is_the_exact_cost_of_reports() -> None:
    found = exposure(Allowance(WEAK, BUDGET), BUDGET, NOON)
    assert found.reports == rounded_up(720 + 2 + 10 + 1)
    assert found.epsilon == costs(WEAK.mechanism, found.reports, BUDGET.delta)["exact"]
    assert found.ratio == found.epsilon / 8.0


def test_exposure_grows_within_a_period_and_restarts() -> None:
    shown = [exposure(Allowance(WEAK, BUDGET), BUDGET, NOON + hour * 3600).epsilon for hour in range(13)]
    assert all(earlier < later for earlier, later in pairwise(shown[:12]))
    assert shown[12] < shown[0]


def test_reports_of_a_window_count_each() -> None:
    one, three = (exposure(Allowance(WEAK, BUDGET, each), BUDGET, NOON).reports for each in (1, 3))
    assert (one, three) == (rounded_up(733), rounded_up(3 * 733))


@pytest.mark.parametrize("budget", [0.2, 0.5, 1.0])
def test_exposure_stays_within_the_budget(budget: float) -> None:
    small = Budget(budget, 1e-6, DAY)
    allowance = Allowance(WEAK, small)
    found = exposure(allowance, small, NOON + DAY // 2 - 1)
    assert found.reports == min(allowance.unspent_limit, rounded_up(1453))
    assert found.ratio <= 1
    if found.reports == allowance.unspent_limit:
        assert costs(WEAK.mechanism, found.reports + 1, 1e-6)["exact"] > budget


def test_report_above_the_budget_spends_nothing() -> None:
    budget = Budget(0.001, 1e-6, DAY)
    assert exposure(Allowance(WEAK, budget), budget, NOON) == (0, 0.0, 0.0, 0.0)


def test_memoized_reports_never_cost_more_than_their_permanent_response() -> None:
    """If that is within the budget, any number of reports is allowed."""
    collection = replace(WEAK, mechanism=BLOOM, memoize=True, candidates=("LAX",))
    allowance = Allowance(collection, BUDGET)
    assert allowance.unspent_limit == UNLIMITED
    found = exposure(allowance, BUDGET, NOON)
    assert found.reports == rounded_up(733)
    assert 0.99 * BLOOM.epsilon_inf < found.epsilon <= min(BLOOM.epsilon_inf, 8.0)


def test_exposure_beyond_the_accountant_stays_within_budget() -> None:
    """The budget is between the costs of the permanent response at delta and at 0."""
    collection = replace(WEAK, mechanism=BLOOM, memoize=True, candidates=("LAX",), window_seconds=1)
    budget = Budget(math.nextafter(BLOOM.epsilon_inf, 0), 1e-6, 30 * DAY, values="unchanged")
    allowance = Allowance(collection, budget, 100)
    assert allowance.unspent_limit == UNLIMITED
    assert exposure(allowance, budget, NOON).ratio == 1.0


def test_rounding_up_is_upwards_and_small() -> None:
    numbers = range(100_000)
    assert all(0 <= rounded_up(n) - n <= n / STEPS for n in numbers)
    assert all(rounded_up(n) == n for n in range(65))
    assert len({rounded_up(n) for n in numbers}) < 500


@pytest.mark.slow
@pytest.mark.parametrize("since", [0, 59, 3600])
@pytest.mark.parametrize(("window", "grace"), [(60, 30), (7, 100), (3600, 0)])
def test_no_client_exceeds_its_exposure(tmp_path, since: int, window: int, grace: int) -> None:
    """A client reports for every window since the period began."""
    begin = 20_000 * DAY
    collection = replace(WEAK, window_seconds=window, grace_seconds=grace)
    allowance = Allowance(collection, Budget(1e6, 1e-6, DAY, values="unchanged"), 2)
    client = np.zeros((1, 16), np.uint8)
    store, sent = Store(tmp_path), 0
    spending = Spending(LocalBudgets(store), [allowance], begin)
    for now in sorted({begin, *range(begin, begin + since, max(window, 60)), begin + since}):
        first = (begin - 2 * (window + grace)) // window * window
        windows = np.repeat(np.arange(first, now + 1000 + window, window), 3)
        off = untimely(collection, windows, now)
        windows = windows[~(off.too_early | off.too_late)]
        with store.transaction():
            charged = spending.charge("answers", client.repeat(len(windows), axis=0), windows, now)
        sent += int(charged.accepted.sum())
    store.close()
    assert CLOCK_SECONDS + EARLY_SECONDS == 600
    shown = exposure(allowance, allowance.budget, begin + since).reports
    assert sent <= shown <= sent * (1 + 1 / STEPS)
