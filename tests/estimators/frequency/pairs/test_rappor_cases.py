"""Cases of google/rappor's association tests: its EM as written in our tests, and our estimators.

The numbers are those of running its `EM` (R) and `fast_em` (C++), which agree to 8e-16. Its noisy cases are
drawn anew here, so each bound has a margin: a run of every case with 200 seeds kept all of them.
"""

import numpy as np
import pytest

from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.frequency.channel_mle import channel_mle
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.frequency.pairs.joint_mle import joint_mle
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.estimators.bit_pairs import bits_of_pairs
from tests.support.estimators.joint_em import em_of_likelihoods, likelihoods_of_reports
from tests.support.estimators.pairs import pair_counts
from tests.support.estimators.simulation import generator

#: P(report | pair) of two kinds of reports of `MakeCondProb`, of which there are 2 and 1.
RISING = np.array([[1, 2], [1, 3], [2, 3]]) / 12
FALLING = np.array([[3, 2], [3, 1], [2, 1]]) / 12
#: Pairs that its test of correlated strings wants to be empty: first and second value, from 0.
EMPTY = [(0, 2), (0, 3), (1, 0), (1, 3), (2, 0), (2, 1)]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [(10, [0.05105859, 0.13334747, 0.31559394]), (93, [0.02915914, 0.10836104, 0.36247982])],
)
def test_em_has_the_numbers_of_fast_em(steps, expected):
    found = em_of_likelihoods(np.stack([RISING, FALLING, RISING]), steps)
    np.testing.assert_allclose(found.ravel(order="F"), np.repeat(expected, 2), atol=5e-9)


def test_maximum_under_any_channel_is_where_that_em_ends():
    """Many tables are most likely; all of them have the same probabilities of the reports, 2/9 and 1/9."""
    channel = np.stack([RISING.ravel(), FALLING.ravel()])
    em = em_of_likelihoods(np.stack([RISING, FALLING, RISING]), 400)
    found = channel_mle(np.array([2, 1]), channel)
    np.testing.assert_allclose(channel @ found.frequency, channel @ em.ravel(), atol=1e-9)
    np.testing.assert_allclose(channel @ found.frequency, [2 / 9, 1 / 9], atol=1e-9)


def correlated(rng: np.random.Generator, reports: int) -> tuple[np.ndarray, np.ndarray]:
    """Its dependent strings, from 0: a Poisson number, and it or the next one."""
    first = rng.poisson(1, reports)
    return first, first + rng.integers(0, 2, reports)


def table_of(first: np.ndarray, second: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    cells = np.ravel_multi_index((first, second), shape)
    return np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)


def check_correlated(table: np.ndarray, margin: float = 0.0) -> None:
    """Its bounds, and `margin` on those that compare shares of a sample of 1,000."""
    assert abs(table[0, 0] - table[0, 1]) < 0.1 + margin
    assert abs(table[1, 1] - table[1, 2]) < 0.1 + margin
    assert abs(table[2, 2] - table[2, 3]) < 0.06 + margin
    assert all(table[cell] < 0.02 for cell in EMPTY)


@pytest.mark.parametrize("seed", range(3))
def test_correlated_strings_by_em_over_bloom_reports(seed):
    """Its 1,000 reports of 16 bits, 2 hashes, 4 cohorts, f .1, p .1, q .9, with our hash functions."""
    rng, mechanism = generator(seed), Rappor.from_probabilities(16, 2, 4, 0.1, 0.1, 0.9)
    values = correlated(rng, 1000)
    words = [[str(value) for value in range(int(each.max()) + 1)] for each in values]
    likelihoods = []
    for each, names in zip(values, words, strict=True):
        cohorts = rng.integers(0, mechanism.cohorts, len(each))
        design = bloom_design(names, mechanism).toarray().reshape(mechanism.cohorts, mechanism.bits, -1)
        rates = np.where(design > 0, mechanism.q_star, mechanism.p_star)[cohorts]
        own = rates[np.arange(len(each)), :, each]
        shown = (rng.random(own.shape) < own)[:, :, None]
        likelihoods.append(np.where(shown, rates, 1 - rates).prod(axis=1))
    table = em_of_likelihoods(likelihoods[0][:, :, None] * likelihoods[1][:, None, :], 300)
    check_correlated(table, 0.05)


@pytest.mark.all
@pytest.mark.parametrize("seed", range(3))
def test_correlated_strings_by_our_mechanisms_at_its_epsilon(seed):
    """Epsilon of both of its reports together is 14.5."""
    epsilon = 2 * Rappor.from_probabilities(16, 2, 4, 0.1, 0.1, 0.9).epsilon
    assert epsilon == pytest.approx(14.52, abs=0.01)
    rng, shape = generator(seed), (12, 13)
    truth = table_of(*correlated(rng, 1000), shape)
    split, bits = (
        PairKRR.from_epsilons(*shape, epsilon / 2, epsilon / 2),
        OneHotPair.from_epsilon(*shape, epsilon),
    )
    found = estimate_pair(pair_counts(rng, truth, split).ravel(), split)
    check_correlated(found.frequency.reshape(shape), 0.05)
    assert found.pair.independence.is_rejected
    found = decode_pair(*bits_of_pairs(rng, truth, bits), bits)
    check_correlated(found.frequency.reshape(shape), 0.1)
    assert found.pair.independence.is_rejected


def test_two_strings_always_together_without_noise():
    """Its first case: each of two pairs has half of 100 reports, within .01."""
    mechanism = PairKRR.from_epsilons(2, 2, 8, 8)
    table = joint_mle(np.array([[50, 0], [0, 50]]), mechanism).table
    np.testing.assert_allclose(table, [[0.5, 0], [0, 0.5]], atol=0.01)


def test_two_strings_always_together_with_noise():
    """Its case of f .2, 100 reports: within .15; each field here flips one in ten, with the same epsilon."""
    mechanism = PairKRR.from_epsilons(2, 2, np.log(9), np.log(9))
    for seed in range(20):
        table = joint_mle(pair_counts(generator(seed), np.diag([50, 50]), mechanism), mechanism).table
        np.testing.assert_allclose(np.diag(table), 0.5, atol=0.2)
        assert np.diag(table).sum() > 0.7


@pytest.mark.slow
def test_joint_table_of_k_rr_equals_the_em_over_single_reports():
    rng, mechanism = generator(9), PairKRR.from_epsilons(5, 6, 2, 2)
    truth = table_of(*(each.clip(0, 4) for each in correlated(rng, 600)), (5, 6))
    counts = pair_counts(rng, truth, mechanism)
    em = em_of_likelihoods(likelihoods_of_reports(counts, mechanism), 3000)
    np.testing.assert_allclose(joint_mle(counts, mechanism).table, em, atol=5e-4)
