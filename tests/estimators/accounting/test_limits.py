"""The bound `exact` alone is what all four bounds together say of it, and costs little at further budgets."""

import pytest

from deniable.estimators.accounting.accountant import allowed_reports, costs
from deniable.estimators.accounting.changing_values import changing
from deniable.estimators.accounting.limits import exact_cost, exactly_allowed
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor

DELTA = 1e-6
LONGITUDINAL = LongitudinalKRR.from_epsilons(4, 4.0, 1.0)
BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("subject", "memoized"),
    [
        (KRR.from_epsilon(100, 0.1), False),
        (KRR.from_epsilon(4, 1.0), True),
        (LONGITUDINAL, True),
        (changing(LONGITUDINAL), True),
        (BLOOM, True),
        (changing(BLOOM), True),
        (LongitudinalHash.from_epsilons(4.0, 1.0), True),
    ],
)
def test_it_is_the_exact_bound_of_the_accountant(subject, memoized):
    for budget in (0.5, 2.0, 3.99, 4.5, 13.7):
        allowed = exactly_allowed(subject, budget, DELTA, memoized)
        assert allowed == allowed_reports(subject, budget, DELTA, memoized)["exact"]
        if allowed:
            assert exact_cost(subject, allowed, DELTA, memoized) <= budget
    assert exact_cost(subject, 7, DELTA, memoized) == costs(subject, 7, DELTA, memoized)["exact"]


@pytest.mark.all
def test_a_further_budget_computes_few_costs():
    """What is left after earlier spending, in 64ths: each search begins with the same numbers of reports."""
    exact_cost.cache_clear()
    exactly_allowed(LongitudinalKRR.from_epsilons(100, 8.0, 0.5), 3.0, DELTA, True)
    first = exact_cost.cache_info().misses
    for level in range(1, 4):
        left = 3.0 * (1 - level / 64)
        exactly_allowed(LongitudinalKRR.from_epsilons(100, 8.0, 0.5), left, DELTA, True)
    assert exact_cost.cache_info().misses <= first + 3 * 3
