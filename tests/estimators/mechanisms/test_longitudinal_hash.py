"""Longitudinal local hashing: exact epsilons, the choice of buckets, and the variance of a rare value."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR, WORDS
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from tests.estimators.mechanisms.test_longitudinal_krr import exact_channel, within
from tests.support.estimators.simulation import generator
from tests.support.messages import PinMessages


def variance(mechanism: LongitudinalHash) -> float:
    """N Var of a value that nobody holds, without collisions."""
    return mechanism.miss * (1 - mechanism.miss) / mechanism.contrast**2


@given(st.floats(0.05, 15), st.floats(0.05, 0.98), st.sampled_from([None, 2, 3, 7]))
def test_neither_epsilon_is_exceeded_and_both_are_exact(epsilon_inf, share, buckets):
    """The function depends on no value, so the worst ratio is that of the channel between buckets."""
    mechanism = LongitudinalHash.from_epsilons(epsilon_inf, share * epsilon_inf, hash_buckets=buckets)
    assert mechanism.epsilon_inf <= epsilon_inf
    assert mechanism.epsilon_one == mechanism.epsilon <= share * epsilon_inf
    if mechanism.hash_buckets > 7:
        return
    rows = range(mechanism.hash_buckets)
    first, second = exact_channel(mechanism.permanent), exact_channel(mechanism.instantaneous)
    whole = [[sum(first[x][r] * second[r][y] for r in rows) for y in rows] for x in rows]
    for channel, epsilon in ((first, mechanism.epsilon_inf), (whole, mechanism.epsilon_one)):
        worst = max(channel[x][b] / channel[y][b] for x in rows for y in rows for b in rows)
        assert within(worst, epsilon)
        assert not within(worst, epsilon * (1 - 2**-24))


@pytest.mark.parametrize(
    ("epsilon_inf", "epsilon_one", "buckets", "expected"), [(2, 1, 3, 3.770), (4, 2, 7, 0.7320)]
)
def test_permanent_responses_cost_no_error(epsilon_inf, epsilon_one, buckets, expected):
    """Both steps together are the k-RR of local hashing at epsilon_one, so the best buckets are the same."""
    mechanism = LongitudinalHash.from_epsilons(epsilon_inf, epsilon_one)
    fresh = LocalHash.from_epsilon(epsilon_one)
    assert mechanism.hash_buckets == fresh.hash_buckets == buckets
    assert (mechanism.hit, mechanism.miss) == pytest.approx((fresh.hit, fresh.miss), rel=1e-9)
    assert variance(mechanism) == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize(
    ("epsilon_inf", "epsilon_one", "buckets", "expected"),
    [(2, 1, 3, 4.20), (2, 1, 2, 4.68), (4, 2, 7, 0.794)],
)
def test_variance_of_published_parameters(epsilon_inf, epsilon_one, buckets, expected):
    """The paper's p2 / q2 = (e^(inf + one) - 1) / (e^inf - e^one) costs less than epsilon_one for g > 2."""
    odds = (math.exp(epsilon_inf + epsilon_one) - 1) / (math.exp(epsilon_inf) - math.exp(epsilon_one))
    permanent = KRR.from_epsilon(buckets, epsilon_inf)
    second = KRR.from_probability(buckets, odds / (odds + buckets - 1))
    mechanism = LongitudinalHash(
        LongitudinalHash.whole_blocks(1000, buckets), buckets, permanent.threshold, second.threshold
    )
    assert variance(mechanism) == pytest.approx(expected, rel=2e-3)
    assert mechanism.epsilon_one <= epsilon_one + 1e-12
    assert buckets == 2 or mechanism.epsilon_one < 0.97 * epsilon_one


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon_inf", "epsilon_one"), [(4, 2), pytest.param(2, 1, marks=pytest.mark.nightly)]
)
def test_simulated_reports_have_that_variance(epsilon_inf, epsilon_one):
    """Both steps of a value that nobody holds, 400 reports 2,000 times.

    The sample variance is within 5 standard deviations of 3.2 % each, with a false-alarm rate of 6e-7. With a
    step left out or drawn twice, the estimate of a value that all hold would be off by a third.
    """
    mechanism, rng = LongitudinalHash.from_epsilons(epsilon_inf, epsilon_one), generator(11)
    reports, runs, g = 400, 2_000, mechanism.hash_buckets
    # Under its client's function the reported value has any bucket, and the asked one any other or the same.
    truth = rng.integers(g, size=(runs, reports))
    hashed = truth
    for step in (mechanism.permanent, mechanism.instantaneous):
        lies = (truth + rng.integers(1, g, size=truth.shape)) % g
        truth = np.where(rng.random(truth.shape) < step.p, truth, lies)
    supported = (truth == rng.integers(g, size=truth.shape)).mean(axis=1)
    estimates = (supported - mechanism.miss) / mechanism.contrast
    expected = variance(mechanism) / reports
    assert abs(estimates.var() / expected - 1) < 5 * math.sqrt(2 / runs)
    held = (truth == hashed).mean()
    assert held == pytest.approx(mechanism.hit, abs=5 * math.sqrt(0.25 / truth.size))


def test_parameters_and_sizes():
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    assert (mechanism.hash_functions, mechanism.hash_buckets, mechanism.cohorts) == (234, 3, 1)
    assert mechanism.width == 702
    steps = LongitudinalKRR.from_epsilons(3, 2.0, 1.0)
    assert mechanism.response == steps
    assert mechanism.parameters() == {
        "kind": "local-hash-longitudinal",
        "hash_functions": 234,
        "hash_buckets": 3,
        "permanent_threshold": steps.permanent.threshold,
        "instantaneous_threshold": steps.instantaneous.threshold,
    }
    assert Fraction(mechanism.epsilon_of_all_buckets) >= 3 * Fraction(mechanism.epsilon_inf)


def test_messages(pin_messages: PinMessages) -> None:
    chosen = LongitudinalHash.from_epsilons
    pin_messages(
        {
            "epsilon_inf is 0": partial(chosen, 0.0, 1.0),
            "epsilon_one is epsilon_inf": partial(chosen, 2.0, 2.0),
            "25 hash functions": partial(chosen, 2.0, 1.0, 25),
            "4 hash buckets": partial(chosen, 2.0, 1.0, None, 4),
            "part of a block of functions": partial(LongitudinalHash, 27, 3, WORDS // 2, WORDS // 2),
            "a threshold of chance": partial(LongitudinalHash, 26, 3, WORDS // 2, WORDS // 3),
        }
    )
