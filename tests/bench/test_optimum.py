"""The distance from the optimum in `make bench` is correct for any estimate."""

import numpy as np
import pytest

from bench.comparison.estimation import simulate
from bench.comparison.krr_optimum import bound, distance, optimum, shortfall
from deniable.estimators.frequency.krr import inv_n, mle
from deniable.estimators.mechanisms.krr import KRR

CASES = [(2, 1.0), (10, 0.5), (200, 2.0), (1000, 4.0)]


@pytest.mark.parametrize(("k", "epsilon"), CASES)
def test_bisection_matches_the_closed_form(k, epsilon):
    mechanism = KRR.from_epsilon(k, epsilon)
    counts = simulate(mechanism, 100_000).counts
    best = optimum(counts, mechanism)
    assert best.min() >= 0
    assert best.sum() == pytest.approx(1, abs=1e-12)
    assert bound(best, counts, mechanism) < 1e-12
    assert bound(mle(counts, mechanism), counts, mechanism) < 1e-12
    assert distance(best, mle(counts, mechanism)) < 1e-12


def test_values_without_reports_have_frequency_0():
    assert optimum(np.array([5, 0, 0]), KRR.from_epsilon(3, 1.0)).tolist() == [1, 0, 0]


def test_shortfall_is_the_difference_of_likelihoods():
    mechanism = KRR.from_epsilon(200, 2.0)
    counts = simulate(mechanism, 100_000).counts
    best = optimum(counts, mechanism)
    for other in (np.full(200, 1 / 200), inv_n(counts, mechanism)):
        fallen = shortfall(other, best, counts, mechanism)
        assert fallen == pytest.approx(
            _likelihood(best, counts, mechanism) - _likelihood(other, counts, mechanism)
        )
        assert 1e-6 < fallen <= bound(other, counts, mechanism)


def test_optimum_falls_short_by_at_most_its_bound():
    mechanism = KRR.from_epsilon(200, 2.0)
    counts = simulate(mechanism, 100_000).counts
    best = optimum(counts, mechanism)
    assert 0 <= shortfall(best, best, counts, mechanism) == bound(best, counts, mechanism)


def _likelihood(theta, counts, mechanism):
    seen = counts > 0
    rates = mechanism.q + mechanism.contrast * theta[seen]
    return counts[seen] @ np.log(rates) / counts.sum()
