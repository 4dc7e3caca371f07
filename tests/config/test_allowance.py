"""Reports that a budget allows, and bounds of spending under earlier parameters."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from deniable.config.settings.allowance import LEVELS, UNLIMITED, Allowance, Budget
from deniable.estimators.accounting.accountant import (
    LARGEST_REPORTS,
    allowed_reports,
    costs,
    loss_of_reports,
    most_reports,
)
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.messages import PinMessages

KRR_MECHANISM = KRR.from_epsilon(100, 1.0)
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
LONGITUDINAL = LongitudinalKRR.from_epsilons(100, 6.0, 1.0)
BUDGET = Budget(8.0, 1e-6, 86400, values="unchanged")


def allowance(mechanism, budget=BUDGET, memoize=False, **options):
    return Allowance(Collection("answers", mechanism, memoize=memoize), budget, **options)


def limit(rule, carried=0.0):
    return int(rule.limits(rule.levels(np.array([carried])))[0])


def test_messages(pin_messages: PinMessages) -> None:
    hashing = Budget(1, 1e-6, 60, 2, "any")
    pin_messages(
        {f"epsilon is {each}": partial(Budget, each, 1e-6, 60) for each in (0, math.nan)}
        | {
            "delta is 0": lambda: Budget(1, 0, 60),
            "the period is 0": lambda: Budget(1, 1e-6, 0),
            "changes are below 0": lambda: Budget(1, 1e-6, 60, -1, "any"),
            "changes of another mechanism": lambda: allowance(KRR_MECHANISM, hashing),
            "one report is above the budget": lambda: allowance(
                KRR_MECHANISM, Budget(0.5, 1e-6, 60)
            ).check_own_clients(),
        }
        | {
            f"reports_per_window is {each}": partial(allowance, KRR_MECHANISM, reports_per_window=each)
            for each in (0, 65536)
        }
    )


def test_budget_of_longitudinal_hashing_covers_the_changes_it_names():
    """Epsilon 8 holds any number of reports in 4 of 7 buckets of epsilon 2, but not in all 7."""
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0, None, 7)
    rules = [allowance(mechanism, Budget(8.001, 1e-9, 60, changes, "any")) for changes in (0, 3, 4, None)]
    assert [rule.unspent_limit == UNLIMITED for rule in rules] == [True, True, False, False]
    assert [rule.epsilon_inf("any") for rule in rules] == pytest.approx([2, 8, 10, 14])
    assert {rule.epsilon_inf("unchanged") for rule in rules} == {mechanism.epsilon_inf}
    assert all(rule.memoized for rule in rules)
    any_change = rules[-1]
    assert (
        any_change.epsilon(any_change.unspent_limit)
        <= 8.001
        < any_change.epsilon(any_change.unspent_limit + 1)
    )
    assert any_change.epsilon(10**6) == any_change.epsilon_inf("any") == mechanism.epsilon_of_all_buckets
    alone = replace(rules[3].budget, values="unchanged")
    assert rules[0].epsilon(3) == allowance(mechanism.response, alone).epsilon(3)
    for reports in (1, 2, 5, 50):
        assert any_change.epsilon(reports) <= reports * any_change.epsilon_per_report


@pytest.mark.all
@pytest.mark.parametrize(
    ("mechanism", "memoize", "memoized"),
    [
        (KRR_MECHANISM, False, False),
        (KRR_MECHANISM, True, False),  # without a permanent response each report is fresh
        (LONGITUDINAL, False, True),
        (BLOOM, True, True),
        (BLOOM, False, False),
    ],
)
def test_limit_is_that_of_the_accountant(mechanism, memoize, memoized):
    budget = Budget(4.0, 1e-6, 60, values="unchanged")
    allowed = allowed_reports(mechanism, 4.0, 1e-6, memoized)["exact"]
    assert limit(allowance(mechanism, budget, memoize)) == allowed > 1


def test_affordable_permanent_response_allows_any_number():
    assert limit(allowance(LONGITUDINAL)) == UNLIMITED
    assert limit(allowance(KRR_MECHANISM, None), carried=1e9) == UNLIMITED


def test_carried_loss_is_rounded_up():
    carried = np.array([0.0, 1e-9, 0.125, 3.3, 7.999, 8.0, 100.0])
    levels = allowance(KRR_MECHANISM).levels(carried)
    assert levels.tolist() == [0, 1, 2, 27, 64, 64, 64]


@pytest.mark.slow
def test_carried_loss_lowers_the_limit_at_least_as_much():
    rule = allowance(KRR_MECHANISM)
    for carried in (1e-9, 1.0, 3.3, 7.0, 7.99, 8.0, 100.0):
        left = max(8.0 - carried, 0.0)
        most = allowed_reports(KRR_MECHANISM, left, 1e-6)["exact"] if left else 0
        step_below = left - 8.0 / LEVELS
        least = allowed_reports(KRR_MECHANISM, step_below, 1e-6)["exact"] if step_below > 0 else 0
        assert least <= limit(rule, carried) <= most


@pytest.mark.parametrize(
    ("mechanism", "memoize"),
    [
        (KRR_MECHANISM, False),
        (BLOOM, True),
        (BLOOM, False),
        (HotRappor.from_probabilities(32, 3, 0.3, 0.4, 0.7), True),
        (LONGITUDINAL, True),
        (LongitudinalKRR.from_epsilons(1000, 9.0, 0.05), True),
    ],
)
def test_reports_never_cost_more_than_their_bound(mechanism, memoize):
    rule = allowance(mechanism, memoize=memoize)
    for reports in (1, 2, 3, 5, 8, 13, 25):
        largest = loss_of_reports(mechanism, reports, rule.memoized).largest
        assert min(largest, rule.epsilon_inf("unchanged")) <= reports * rule.epsilon_per_report * (1 + 1e-9)


def test_equal_longitudinal_reports_cost_more_than_their_sum():
    """So for memoized k-RR, n times the loss of one report is not a bound."""
    mechanism = LongitudinalKRR.from_epsilons(1000, 9.0, 0.05)
    assert loss_of_reports(mechanism, 25, memoized=True).largest > 25 * mechanism.epsilon_one * 1.01


def test_epsilon_is_exact_within_the_accountant():
    fresh, memoized = allowance(KRR_MECHANISM), allowance(BLOOM, memoize=True)
    assert fresh.epsilon(0) == 0.0
    assert fresh.epsilon(50) == costs(KRR_MECHANISM, 50, 1e-6)["exact"] < 50
    assert fresh.epsilon(1_000_000) == 1_000_000 * KRR_MECHANISM.epsilon
    assert memoized.epsilon(20_000) == BLOOM.epsilon_inf
    assert allowance(KRR_MECHANISM, None).epsilon(50) == fresh.epsilon(50)


def test_epsilon_beyond_the_accountant_is_the_bound():
    """The accountant handles fewer reports of a value that sets many bits."""
    mechanism = HotRappor.from_probabilities(512, 256, 0.25, 0.45, 0.55)
    rule = allowance(mechanism, Budget(1e6, 1e-6, 60))
    most = most_reports(mechanism, memoized=False)
    assert most < LARGEST_REPORTS
    assert rule.epsilon(most + 1) == (most + 1) * mechanism.epsilon


def test_delta_is_that_of_the_budget_or_the_stated_one():
    assert allowance(KRR_MECHANISM, Budget(8.0, 1e-9, 60)).delta == 1e-9
    assert allowance(KRR_MECHANISM, None).delta == 1e-6


def test_clientless_events_need_a_budget_of_one_report():
    allowance(KRR_MECHANISM, Budget(1.0, 1e-6, 60)).check_own_clients()
    allowance(KRR_MECHANISM, None).check_own_clients()
    with pytest.raises(ValueError, match="answers"):
        allowance(KRR_MECHANISM, Budget(0.5, 1e-6, 60)).check_own_clients()
