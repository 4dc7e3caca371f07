"""The cost of reports, and its inverse: how many reports a budget allows."""

import math
from functools import partial
from itertools import pairwise

import pytest

from deniable.estimators.accounting.accountant import (
    BOUNDS,
    LARGEST_MEMOIZED,
    LARGEST_REPORTS,
    Mechanism,
    allowed_reports,
    costs,
    epsilon_inf,
    most_reports,
)
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.estimators.accounting_vectors import VECTORS
from tests.support.messages import PinMessages

KRR_16 = KRR.from_epsilon(16, 1.0)
LONGITUDINAL = LongitudinalKRR(KRR.from_epsilon(6, 1.0), KRR.from_epsilon(6, 0.3))
BLOOM = Rappor.from_probabilities(128, 2, 8, f=0.25, p=0.35, q=0.65)
TWO_HOT = HotRappor.from_probabilities(128, 2, f=0.25, p=0.35, q=0.65)
MECHANISMS = [KRR_16, LONGITUDINAL, BLOOM, TWO_HOT]


@pytest.mark.parametrize("memoized", [False, True])
def test_local_hash_costs_what_its_krr_costs(memoized: bool) -> None:
    mechanism = LocalHash.from_epsilon(1.5)
    assert costs(mechanism, 7, 1e-6, memoized) == costs(mechanism.response, 7, 1e-6, memoized)
    assert allowed_reports(mechanism, 3.0, 1e-6, memoized) == allowed_reports(
        mechanism.response, 3.0, 1e-6, memoized
    )
    assert epsilon_inf(mechanism, memoized) == epsilon_inf(mechanism.response, memoized)
    assert most_reports(mechanism, memoized) == most_reports(mechanism.response, memoized)


@pytest.mark.parametrize("memoized", [False, True])
def test_a_prefix_tree_costs_what_a_level_costs(memoized: bool) -> None:
    """A client has one level, which depends on no value."""
    mechanism = PrefixTree.from_epsilon((2, 4, 6), 1.5)
    assert costs(mechanism, 7, 1e-6, memoized) == costs(mechanism.oracle, 7, 1e-6, memoized)
    assert epsilon_inf(mechanism, memoized) == epsilon_inf(mechanism.oracle, memoized)
    assert most_reports(mechanism, memoized) == most_reports(mechanism.oracle, memoized)


def test_bloom_matches_the_vectors() -> None:
    for row in VECTORS["rappor"]:
        mechanism = Rappor.from_probabilities(128, row["hashes"], 8, row["f"], row["p"], row["q"])
        assert mechanism.epsilon == pytest.approx(row["epsilon_one"], rel=1e-8)
        assert epsilon_inf(mechanism, memoized=True) == pytest.approx(
            row["epsilon_inf"] or math.inf, rel=1e-8
        )


@pytest.mark.nightly
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("memoized", [False, True])
@pytest.mark.parametrize("budget", [0.5, 0.95, 6.0])
def test_allowed_reports_fit_and_one_more_does_not(
    mechanism: Mechanism, memoized: bool, budget: float
) -> None:
    delta = 1e-6
    most = LARGEST_MEMOIZED if memoized else LARGEST_REPORTS
    for name, reports in allowed_reports(mechanism, budget, delta, memoized).items():
        if reports is None:
            assert memoized
            assert costs(mechanism, 200, delta, memoized)[name] <= budget
            continue
        assert reports == 0 or costs(mechanism, reports, delta, memoized)[name] <= budget
        assert reports == most or costs(mechanism, reports + 1, delta, memoized)[name] > budget


def test_basic_composition_counts_whole_epsilons() -> None:
    assert costs(KRR_16, 5, 1e-6)["basic"] == 5.0
    assert allowed_reports(KRR_16, 8.0, 1e-6)["basic"] == 8
    assert allowed_reports(KRR_16, 0.99, 1e-6) == {"basic": 0, "zcdp": 0, "rdp": 0, "exact": 0}


def test_exact_accounting_allows_more_reports() -> None:
    assert allowed_reports(KRR_16, 8.0, 1e-6) == {"basic": 8, "zcdp": 8, "rdp": 9, "exact": 10}


def test_unbounded_number_of_reports_is_none() -> None:
    found = allowed_reports(KRR.from_epsilon(1000, 0.01), 4.0, 1e-6)
    assert found["basic"] == 400
    assert found["exact"] == LARGEST_REPORTS


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_memoized_reports_cost_at_most_their_permanent_response(mechanism: Mechanism) -> None:
    limit = epsilon_inf(mechanism, memoized=True)
    for reports in (1, 20, 500):
        assert max(costs(mechanism, reports, 1e-6, memoized=True).values()) <= limit
    assert allowed_reports(mechanism, limit, 1e-6, memoized=True) == dict.fromkeys(BOUNDS)


@pytest.mark.slow
def test_many_bits_per_value_limit_the_reports() -> None:
    """A report of 256 hot bits counts as 256 outputs; composing 100,000 reports used to take minutes."""
    many = HotRappor.from_probabilities(512, 256, f=0.01, p=0.499, q=0.5)
    assert most_reports(TWO_HOT, memoized=False) == LARGEST_REPORTS
    assert most_reports(many, memoized=False) == most_reports(many, memoized=True) == 3906
    with pytest.raises(ValueError, match="3906"):
        costs(many, 3907, 1e-6)
    assert allowed_reports(many, 1000.0, 1e-6) == {"basic": 986, "zcdp": 3906, "rdp": 3906, "exact": 3906}
    # Where rdp allows all of them, zcdp may not.
    found = allowed_reports(many, 18.0, 1e-6)
    assert found["rdp"] == 3906
    assert costs(many, found["zcdp"], 1e-6)["zcdp"] <= 18 < costs(many, found["zcdp"] + 1, 1e-6)["zcdp"]


@pytest.mark.slow
def test_only_bounds_within_the_budget_are_unbounded() -> None:
    """With a million values, only the RDP bound of the permanent response is within the budget."""
    mechanism = LongitudinalKRR.from_epsilons(1_000_000, 1.0, 1e-6)
    found = allowed_reports(mechanism, 0.9, 1e-6, memoized=True)
    assert found == {"basic": 33, "zcdp": LARGEST_MEMOIZED, "rdp": None, "exact": None}


def test_memoized_krr_report_counts_once() -> None:
    assert costs(KRR_16, 1000, 1e-6, memoized=True) == costs(KRR_16, 1, 1e-6) | {"zcdp": 1.0}
    assert epsilon_inf(KRR_16, memoized=True) == KRR_16.epsilon
    assert epsilon_inf(KRR_16, memoized=False) == math.inf


def test_memoizing_without_permanent_noise_gives_no_limit() -> None:
    bare = HotRappor.from_probabilities(128, 2, f=0.0, p=0.35, q=0.65)
    assert costs(bare, 7, 1e-6, memoized=True) == costs(bare, 7, 1e-6)
    assert allowed_reports(bare, 9.0, 1e-6, memoized=True) == allowed_reports(bare, 9.0, 1e-6)


def test_bloom_and_two_hot_with_equal_probabilities_cost_the_same() -> None:
    for memoized in (False, True):
        assert costs(BLOOM, 9, 1e-6, memoized) == costs(TWO_HOT, 9, 1e-6, memoized)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
@pytest.mark.parametrize("memoized", [False, True])
def test_no_bound_falls_with_more_reports(mechanism: Mechanism, memoized: bool) -> None:
    for fewer, more in pairwise(costs(mechanism, reports, 1e-6, memoized) for reports in (1, 2, 7, 31, 90)):
        assert all(fewer[name] <= more[name] * (1 + 1e-12) for name in BOUNDS)


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {f"{each} reports": partial(costs, KRR_16, each, 1e-6) for each in (0, 100_001)}
        | {"10001 memoized reports": partial(costs, KRR_16, 10_001, 1e-6, memoized=True)}
        | {f"delta is {each}": partial(costs, KRR_16, 1, each) for each in (0.0, 1.0)}
        | {
            f"budget is {each}": partial(allowed_reports, KRR_16, each, 1e-6)
            for each in (0.0, math.nan, math.inf)
        }
        | {"delta of a budget is -1.0": partial(allowed_reports, KRR_16, 1.0, -1.0)}
    )
