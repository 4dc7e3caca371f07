"""Discoveries on the last level: false ones at the stated rate, and weights that only shift the power."""

import numpy as np
import pytest

from deniable.estimators.decoding.hashed.growth.discovery import AbsentTail, discover
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from tests.support.estimators.simulation import generator

CHANNEL = Inversion.of_support(LocalHash.from_epsilon(3.0, 1000))
REPORTS = 4000
ABSENT = AbsentTail(CHANNEL, REPORTS, 0.0)


def estimates(rng, frequency: np.ndarray) -> np.ndarray:
    rate = CHANNEL.miss + frequency * CHANNEL.contrast
    return CHANNEL.frequency(rng.binomial(REPORTS, rate) / REPORTS)


@pytest.mark.slow
def test_p_values_of_absent_texts_are_never_too_small():
    """2 million binomials with 182 expected supports: p is at least the share of p-values of at most p.

    False-alarm rate 1e-6 by 5 standard errors. A normal tail, 1.8 times too small at 1e-4, is caught.
    """
    p_values = ABSENT.p_values(estimates(generator(1), np.zeros(2_000_000)))
    for p in (1e-2, 1e-3, 1e-4, 1e-5):
        assert (p_values <= p).sum() < 2e6 * p + 5 * np.sqrt(2e6 * p)
    assert (p_values <= 1e-3).mean() > 5e-4


def test_thresholds_are_estimates_with_these_p_values():
    p = np.array([1e-6, 1e-3, 0.05])
    assert ABSENT.p_values(ABSENT.threshold(p) + 1e-12) == pytest.approx(p, rel=1e-6)


def test_collisions_widen_the_tail():
    wider = AbsentTail(CHANNEL, REPORTS, ABSENT.std_error)
    x = np.array([4 * ABSENT.std_error])
    assert wider.std_error == pytest.approx(np.sqrt(2) * ABSENT.std_error)
    assert wider.distance(x) == pytest.approx(ABSENT.distance(x) / np.sqrt(2))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("runs", [60, pytest.param(300, marks=pytest.mark.nightly)])
def test_false_discoveries_are_at_the_stated_rate(weighted, runs):
    """Searches among 2,000 texts, 20 of them real, at 10 %: the mean share of false ones.

    Its expectation is at most 0.1 and its standard error 0.005 of 300, so 0.125 has a false-alarm rate below
    1e-6; of 60 it is 0.011, and the limit 0.156.
    Without the division by the number of tests nearly all would be false.
    """
    rng, shares = generator(2), []
    frequency = np.concatenate([np.linspace(0.02, 0.06, 20), np.zeros(1980)])
    weights = np.concatenate([np.full(40, 20.0), np.ones(1960)]) if weighted else np.ones(2000)
    found, covers = [], []
    for _ in range(runs):
        result = discover(estimates(rng, frequency), weights, ABSENT, 0.1)
        found.append(len(result.place))
        shares.append((result.place >= 20).mean() if len(result.place) else 0.0)
        truth = frequency[result.place]
        covers += ((result.low <= truth) & (truth <= result.high)).tolist()
    assert np.mean(shares) < (0.125 if runs == 300 else 0.156)
    assert np.mean(found) > (12 if weighted else 9)
    # 2,700 and more intervals, binomial: 0.95 -+ 5 standard errors of 0.0042, and the discreteness of counts;
    # with 60 searches 5 of 0.0094.
    assert np.mean(covers) > (0.92 if runs == 300 else 0.89)


def test_texts_without_weight_are_never_found():
    frequency = np.array([0.2, 0.2, 0.0])
    result = discover(estimates(generator(3), frequency), np.array([1.0, 0.0, 1.0]), ABSENT, 0.05)
    assert result.place.tolist() == [0]


def test_no_text_is_found_where_none_is_frequent():
    result = discover(np.array([0.0001, -0.02]), np.ones(2), ABSENT, 0.05)
    assert [len(each) for each in (result.place, result.frequency, result.low, result.high)] == [0] * 4


def test_frequencies_among_all_reports_are_less_certain_than_among_those_of_the_level():
    x = np.array([0.3])
    alone, sampled = (discover(x, np.ones(1), ABSENT, 0.05, each) for each in (0.0, 0.75))
    assert sampled.std_error**2 == pytest.approx(alone.std_error**2 + 0.75 * 0.3 * 0.7 / REPORTS)
