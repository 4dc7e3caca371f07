"""Plans agree with the formulas and with the errors that estimators report."""

import math

import numpy as np
import pytest

from estimators.decoding.bloom import decode
from estimators.frequency.krr import estimate
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.planning import (
    LEAST_EPSILON,
    best_bloom,
    best_one_hot,
    expected_std_error,
    krr_limit,
    reports_needed,
    smallest_detectable,
)
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_errors_of_rare_values_match_published_ones(epsilon):
    """(K - 2 + e^eps) / (e^eps - 1)² for k-RR and 4 e^eps / (e^eps - 1)² for one-hot, divided by N."""
    power = math.exp(epsilon)
    krr = expected_std_error(KRR.from_epsilon(50, epsilon), 1000) ** 2
    one_hot = expected_std_error(best_one_hot(50, epsilon), 1000) ** 2
    assert krr == pytest.approx((48 + power) / (power - 1) ** 2 / 1000, rel=1e-6)
    assert one_hot == pytest.approx(4 * power / (power - 1) ** 2 / 1000, rel=1e-6)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 3.0])
def test_3_e_epsilon_plus_2_needs_optimized_unary_encoding(epsilon):
    """K < 3 e^eps + 2 with q* = 1/2, p* = 1/(e^eps + 1); symmetric bits or a permanent step raise it."""
    rule = 3 * math.exp(epsilon) + 2
    assert krr_limit(best_one_hot(2, epsilon), epsilon) == pytest.approx(rule, rel=1e-6)
    flip = 1 / (math.exp(epsilon / 2) + 1)
    symmetric = HotRappor.from_probabilities(2, 1, 0.0, flip, 1 - flip)
    assert symmetric.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert krr_limit(symmetric, epsilon) > 1.01 * rule
    permanent = HotRappor.from_probabilities(2, 1, 0.25, 1 / (math.exp(epsilon) + 1), 0.5)
    assert krr_limit(permanent, epsilon) > 1.2 * rule


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_limit_is_where_the_errors_cross(epsilon):
    limit = krr_limit(best_one_hot(2, epsilon), epsilon)
    one_hot = expected_std_error(best_one_hot(2, epsilon), 1)
    assert expected_std_error(KRR.from_epsilon(math.floor(limit), epsilon), 1) < one_hot
    assert expected_std_error(KRR.from_epsilon(math.floor(limit) + 1, epsilon), 1) > one_hot


@pytest.mark.parametrize(
    "mechanism", [KRR.from_epsilon(10, 1.0), LongitudinalKRR.from_epsilons(10, 2.0, 1.0)]
)
def test_krr_errors_match_those_of_the_estimator(mechanism):
    counts = np.rint(100_000 * (mechanism.q + mechanism.contrast * np.array([0.5, 0.3, 0.2] + 7 * [0.0])))
    result = estimate(counts.astype(np.int64), mechanism)
    for value, frequency in ((0, 0.5), (1, 0.3), (9, 0.0)):
        planned = expected_std_error(mechanism, result.reports, frequency)
        assert planned == pytest.approx(result.std_error[value], rel=1e-3)


@pytest.mark.parametrize(
    ("mechanism", "candidates"),
    [
        (Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), 305),
        (best_bloom(2.0), 305),
        (best_bloom(2.0), 20),
    ],
)
def test_bloom_errors_match_those_of_the_decoder(mechanism, candidates):
    """Mean error of candidates without clients beside 105 or 15 others with Zipf 1: within 12 %."""
    words = [f"word-{i}" for i in range(candidates)]
    held = zipf_counts(105 if candidates > 105 else 15, 336_776)
    counts, sizes = rappor_counts(generator(1), held, words[: len(held)], mechanism)
    reported = decode(counts, sizes, words, mechanism).std_error[len(held) :].mean()
    assert expected_std_error(mechanism, 336_776, 0.0, candidates) == pytest.approx(reported, rel=0.12)


def test_bloom_error_allows_for_an_even_background():
    """8 bits, 1 hash, 64 cohorts, uniform other strings: within 2 %; off by 6 % without the background."""
    mechanism = Rappor.from_probabilities(8, 1, 64, 0.25, 0.35, 0.65)
    share = mechanism.p_star + (mechanism.q_star - mechanism.p_star) / 8
    counts, sizes = np.full((64, 8), round(share * 100_000)), np.full(64, 100_000)
    reported = float(decode(counts, sizes, ["apple"], mechanism).std_error[0])
    assert expected_std_error(mechanism, 6_400_000) == pytest.approx(reported, rel=0.02)


def test_smallest_epsilon_is_reached_within_a_percent():
    for mechanism in (best_one_hot(4096, LEAST_EPSILON), best_bloom(LEAST_EPSILON)):
        assert 0.98e-6 < mechanism.epsilon <= 1e-6


def test_smallest_detectable_frequency_is_detected_with_probability_0_9():
    """20,000 normal draws each: 90 % are detected, and 5 % / 50 falsely, within 5 sigma."""
    mechanism, rng = KRR.from_epsilon(50, 2.0), generator(2)
    smallest = smallest_detectable(mechanism, 30_000, 50)
    rare = expected_std_error(mechanism, 30_000)
    critical = 3.090232306167813 * rare  # normal quantile of 1 - 0.05 / 50
    held = round(smallest * 30_000)
    ones = rng.binomial(held, mechanism.p, 20_000) + rng.binomial(30_000 - held, mechanism.q, 20_000)
    found = (ones / 30_000 - mechanism.q) / mechanism.contrast > critical
    assert found.mean() == pytest.approx(0.9, abs=0.011)
    nobody = (
        rng.binomial(30_000, mechanism.q, 20_000) / 30_000 - mechanism.q
    ) / mechanism.contrast > critical
    assert nobody.mean() == pytest.approx(0.001, abs=0.0012)


def test_too_few_reports_detect_nothing():
    assert smallest_detectable(KRR.from_epsilon(1000, 0.1), 100, 1000) == math.inf


@pytest.mark.parametrize("wanted", [0.5, 0.01, 1e-4])
def test_reports_needed_reach_the_error_and_one_less_does_not(wanted):
    mechanism = best_one_hot(10, 1.0)
    needed = reports_needed(mechanism, wanted)
    assert expected_std_error(mechanism, needed) <= wanted
    if needed > 1:
        assert expected_std_error(mechanism, needed - 1) > wanted


def test_best_mechanisms_do_not_exceed_epsilon():
    for mechanism in (best_one_hot(10, 1.0), best_bloom(1.0)):
        assert 0.999 < mechanism.epsilon <= 1.0


KEPT = KRR.from_epsilon(4, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expected_std_error(KEPT, 0), rf"reports must be in \[1, {10**18}\], got 0"),
        (lambda: expected_std_error(KEPT, 10**400), rf"reports must be in \[1, {10**18}\], got 1(0)*"),
        (lambda: expected_std_error(KEPT, 9, 1.5), r"frequency must be in \[0, 1\], got 1.5"),
        (lambda: expected_std_error(KEPT, 9, 0.0, 0), "candidates must be at least 1, got 0"),
        (lambda: smallest_detectable(KEPT, 9, 0), "values must be at least 1, got 0"),
        (lambda: reports_needed(KEPT, 1e-160), r"std_error must be in \[1e-09, 1\], got 1e-160"),
        (lambda: reports_needed(KEPT, math.nan), r"std_error must be in \[1e-09, 1\], got nan"),
        (lambda: best_one_hot(4, 0.0), r"epsilon must be in \[1e-06, 16\], got 0.0"),
        (lambda: best_bloom(17.0), r"epsilon must be in \[1e-06, 16\], got 17.0"),
        (lambda: krr_limit(best_one_hot(4, 1.0), -1.0), r"epsilon must be in \[1e-06, 16\], got -1.0"),
    ],
)
def test_bad_parameters_are_rejected(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()
