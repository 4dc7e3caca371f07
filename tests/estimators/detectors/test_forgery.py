"""Detectors: honest reports raise alarms at most at the stated rate; forged ones raise alarms.

Rates are measured over SEEN seeded runs. A measured rate may exceed an exact one by 5 standard deviations,
and that of a likelihood ratio by a fifth more.
"""

import numpy as np
import pytest

from deniable.estimators.detectors.forgery import (
    LEAST_EXPECTED,
    change_p_value,
    change_p_values,
    cohort_p_value,
    impossible_p_values,
    popcount_p_value,
)
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from tests.support.messages import PinMessages

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
HOT = HotRappor.from_probabilities(20, 3, 0.25, 0.35, 0.65)
CHANNEL = KRR.from_epsilon(20, 2.0)
SEEN = 4000
RATES = (0.05, 0.01)


def check_rate(p_values, factor=1.0):
    for rate in RATES:
        most = factor * rate + 5 * np.sqrt(rate / len(p_values))
        assert np.mean(np.array(p_values) <= rate) <= most


def popcounts(rng, ones, reports, mechanism):
    zeros = mechanism.width - np.asarray(ones)
    return rng.binomial(ones, mechanism.q_star, reports) + rng.binomial(zeros, mechanism.p_star, reports)


@pytest.mark.all
@pytest.mark.parametrize("reports", [1, 200])
@pytest.mark.parametrize(
    ("mechanism", "ones"),
    [
        (BLOOM, 2),
        (HOT, 0),
        *(pytest.param(*each, marks=pytest.mark.nightly) for each in ((BLOOM, 1), (HOT, 3))),
    ],
)
def test_honest_popcounts_rarely_alarm(mechanism, ones, reports):
    """With the fewest and the most true ones, which are the worst cases."""
    rng = np.random.default_rng(1)
    runs = SEEN if reports == 1 else SEEN // 4
    check_rate([popcount_p_value(popcounts(rng, ones, reports, mechanism), mechanism) for _ in range(runs)])


def test_tail_of_popcounts_is_exact():
    """For one report: 4 times the smaller tail; most true ones for the upper, fewest for the lower."""
    from scipy.stats import poisson_binom  # here, since to import it takes half a second

    chances = [BLOOM.q_star] * 2 + [BLOOM.p_star] * 126
    for ones in (70, 75, 128):
        expected = 4 * poisson_binom(chances).sf(ones - 1)
        assert popcount_p_value(np.array([ones]), BLOOM) == pytest.approx(expected, rel=1e-6, abs=1e-14)
    chances = [BLOOM.q_star] + [BLOOM.p_star] * 127
    for ones in (0, 2, 30):
        expected = 4 * poisson_binom(chances).cdf(ones)
        assert popcount_p_value(np.array([ones]), BLOOM) == pytest.approx(expected, rel=1e-6, abs=1e-14)
    assert popcount_p_value(np.full(10, 128), HotRappor.from_probabilities(128, 5, 0.25, 0.35, 0.65)) < 1e-12


def test_forged_popcounts_alarm():
    """One report of bare Bloom bits, and a pack with 2 extra ones in each report, but none with 0 extra."""
    rng = np.random.default_rng(2)
    honest = popcounts(rng, 2, 1000, BLOOM)
    assert popcount_p_value(honest, BLOOM) > 0.01
    assert popcount_p_value(np.append(honest, 2), BLOOM) < 1e-9
    assert popcount_p_value(honest + 2, BLOOM) < 1e-9
    assert popcount_p_value(honest - 2, BLOOM) < 1e-9


@pytest.mark.slow
def test_uneven_cohorts_alarm_and_honest_ones_rarely():
    rng = np.random.default_rng(3)
    sizes = rng.multinomial(8 * LEAST_EXPECTED, np.full(8, 1 / 8), SEEN)
    check_rate([cohort_p_value(each) for each in sizes], factor=1.2)
    assert cohort_p_value(np.array([12_500] * 7 + [13_500])) < 1e-9
    assert cohort_p_value(np.array([300])) == 1
    assert cohort_p_value(np.array([0, 2 * LEAST_EXPECTED - 1])) == 1


def test_possible_counts_rarely_alarm():
    """The worst cases: a value of no client, and a value of all clients."""
    rng = np.random.default_rng(4)
    counts = np.stack([rng.binomial(500, CHANNEL.q, SEEN), rng.binomial(500, CHANNEL.p, SEEN)])
    for each in counts:
        check_rate(impossible_p_values(each, np.array(500), CHANNEL.p, CHANNEL.q))


def test_impossible_counts_alarm():
    """No report of a value that no client has; more reports of a value than all clients could send."""
    p_values = impossible_p_values(np.array([0, 19, 140, 200]), np.array(500), CHANNEL.p, CHANNEL.q)
    assert p_values[0] < 1e-6
    assert p_values[1] > 0.5
    assert p_values[2] > 0.5
    assert p_values[3] < 1e-6


SHARES = CHANNEL.q + CHANNEL.contrast * np.array([0.5, 0.3, 0.2] + [0.0] * 17)


@pytest.mark.slow
def test_windows_of_the_same_distribution_rarely_alarm():
    """Windows of unequal sizes, with some buckets too small to be tested separately."""
    rng = np.random.default_rng(5)
    before, after = rng.multinomial(1000, SHARES, SEEN), rng.multinomial(2600, SHARES, SEEN)
    assert (before.mean(axis=0) < LEAST_EXPECTED).any()
    check_rate([change_p_value(*each) for each in zip(before, after, strict=True)], factor=1.2)


def test_changed_distribution_alarms():
    rng = np.random.default_rng(6)
    before, after = rng.multinomial(100_000, SHARES, 2)
    assert change_p_value(before, after) > 1e-4
    after[19] += 1000
    assert change_p_value(before, after) < 1e-9
    assert change_p_value(before, np.zeros(20, np.int64)) == 1
    assert change_p_value(np.eye(20, dtype=np.int64)[0] * 500, np.eye(20, dtype=np.int64)[0] * 500) == 1


@pytest.mark.slow
def test_bits_of_the_same_distribution_rarely_alarm():
    rng = np.random.default_rng(7)
    sizes = np.array([200, 300])
    runs = [rng.binomial(sizes[:, None], 0.4, (2, 2, 16)) for _ in range(SEEN)]
    check_rate([32 * change_p_values(a, sizes, b, sizes).min() for a, b in runs], factor=1.2)


def test_changed_bits_alarm_by_bit():
    rng = np.random.default_rng(8)
    sizes = np.array([12_500, 12_500])
    before, after = rng.binomial(12_500, 0.4, (2, 2, 64))
    after[1, 5] += 900
    p_values = change_p_values(before, sizes, after, sizes)
    assert np.unravel_index(p_values.argmin(), p_values.shape) == (1, 5)
    assert p_values.min() < 1e-9
    few = change_p_values(before // 1000, sizes, after // 1000, sizes)
    np.testing.assert_array_equal(few, 1)


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages({"a pack without reports": lambda: popcount_p_value(np.empty(0, np.int64), BLOOM)})
