"""Tails of few supports: strings of nobody are seldom found, and intervals hold, down to 100 reports."""

import numpy as np
import pytest
from scipy.special import erfc, gammaln

from bench.estimators.growth.prefix_reports import tree_counts
from bench.estimators.populations import buckets_of, fixed_counts
from deniable.estimators.decoding.hashed.collisions import collisions_in, error_of_fixed
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.decoding.hashed.listed import decode_listed
from deniable.estimators.decoding.hashed.support_test import SupportTest
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.rollup.hashed import roll_up_hashed
from tests.support.estimators.simulation import generator

ABSENT = [f"absent {number}" for number in range(1000)]
RUNS = 8


def binomial(trials: int, probability: float) -> np.ndarray:
    """P(X = 0), ..., P(X = trials), float64 (trials + 1,)."""
    x = np.arange(trials + 1)
    ways = gammaln(trials + 1) - gammaln(x + 1) - gammaln(trials - x + 1)
    return np.exp(ways + x * np.log(probability) + (trials - x) * np.log1p(-probability))


def every_count(reports: int, mechanism: LocalHash, spread: float) -> SupportTest:
    """The test of every count of supports from 0 to the reports."""
    alike = np.ones(reports + 1)
    columns = (mechanism.hit * alike, mechanism.miss * alike, spread * alike, spread * alike)
    return SupportTest(np.arange(reports + 1.0), reports, *columns, jump=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
@pytest.mark.parametrize("reports", [1, 10, 100, 400])
@pytest.mark.parametrize("level", [0.95, 1 - 0.05 / 1000])
def test_intervals_cover_every_share_by_exact_sums(epsilon, reports, level):
    """At least the level, up to 4 % of what is left, for every number of holders.

    Defect caught: the interval of a normal covers 88 % at the worst number of holders of 100, epsilon 8.
    """
    mechanism = LocalHash.from_epsilon(epsilon)
    low, high = every_count(reports, mechanism, 0.0).interval(level)
    assert (low < high).all()
    assert low.min() >= 0
    assert high.max() <= 1
    for holders in np.unique(np.linspace(0, reports, 41).astype(int)):
        chances = np.convolve(binomial(holders, mechanism.hit), binomial(reports - holders, mechanism.miss))
        share = holders / reports
        missed = chances[(low > share + 1e-9) | (high < share - 1e-9)].sum()
        assert missed <= 1.04 * (1 - level) + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 4.0, 8.0, 16.0])
def test_tails_of_absent_candidates_are_exact_to_a_few_percent(epsilon):
    """Of the binomial, down to 1e-12; the normal tail is too small by up to eight orders of magnitude."""
    mechanism = LocalHash.from_epsilon(epsilon)
    for reports in (100, 1000):
        deviate = every_count(reports, mechanism, 0.0).deviates_of_absent()
        exact = np.cumsum(binomial(reports, mechanism.miss)[::-1])[::-1]
        is_tail = np.isfinite(deviate) & (exact < 0.1) & (exact > 1e-12)
        ratio = erfc(deviate[is_tail] / np.sqrt(2)) / 2 / exact[is_tail]
        assert is_tail.sum() > 3
        assert ratio.min() > 0.96
        assert ratio.max() < 1.04


def test_a_spread_beyond_the_counts_widens_both_ends():
    """By as much as a normal of both variances where counts are many."""
    mechanism = LocalHash.from_epsilon(1.0)
    plain, wide = (every_count(4000, mechanism, spread).interval(0.95) for spread in (0.0, 3000.0))
    ratio = (wide.high - wide.low)[2000] / (plain.high - plain.low)[2000]
    count = 4000 * mechanism.miss * (1 - mechanism.miss)
    assert ratio == pytest.approx(np.sqrt((count + 3000) / count), rel=0.03)


def local_hash(mechanism: LocalHash | LongitudinalHash, rng: np.random.Generator, key: int) -> Estimate:
    """100 reports of 20 strings that no list has; the candidates are strings of nobody."""
    functions = hash_functions_of(mechanism, key)
    words = functions.words([f"held {number}" for number in range(20)])
    counts = fixed_counts(np.full(20, 5), buckets_of(words, functions), mechanism, rng)
    if isinstance(mechanism, LongitudinalHash):
        return roll_up_hashed(counts, np.full(4, 25), ABSENT, mechanism, key).shared
    return decode_hashed(counts, ABSENT, mechanism, key)


def tree(mechanism: PrefixTree, rng: np.random.Generator, key: int) -> Estimate:
    """The last of two levels, with about 100 reports."""
    held = [f"held {number:03}".encode() for number in range(20)]
    return decode_listed(tree_counts(rng, held, np.full(20, 10), mechanism, key), ABSENT, mechanism, key)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "mechanism"),
    [
        pytest.param(local_hash, LocalHash.from_epsilon(4.0), id="local-hash-4", marks=pytest.mark.nightly),
        pytest.param(local_hash, LocalHash.from_epsilon(8.0), id="local-hash-8"),
        pytest.param(
            local_hash,
            LongitudinalHash.from_epsilons(16.0, 8.0),
            id="longitudinal-8",
            marks=pytest.mark.nightly,
        ),
        pytest.param(tree, PrefixTree.from_epsilon((2, 12), 8.0), id="tree-8"),
    ],
)
def test_strings_of_nobody_are_seldom_found_among_100_reports(window, mechanism):
    """1,000 candidates of nobody, 8 collections: 5 % of windows find one, so 4 do with probability 4e-4.

    The seed is fixed. Defect caught: with normal tails 84 % of windows at epsilon 4 find one, and all at 8;
    at 8 the intervals for all values at once hold all of them in 46 %.
    """
    rng, found, held = generator(11), 0, 0
    for key in range(RUNS):
        result = window(mechanism, rng, key)
        found += bool(result.significant.any())
        assert result.for_all is not None
        held += bool((result.for_all.low <= 0).all())
    assert found <= 3
    assert held >= RUNS - 3


@pytest.mark.parametrize(("noise", "collisions"), [(1.0, 0.01), (1.0, 0.3), (0.1, 2.0), (1.0, 0.0)])
def test_collisions_follow_from_the_error_of_fixed_values(noise, collisions):
    assert collisions_in(error_of_fixed(noise, collisions), noise) == pytest.approx(collisions, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "epsilon", [0.01, 16.0, *(pytest.param(each, marks=pytest.mark.nightly) for each in (0.5, 4.0))]
)
@pytest.mark.parametrize("reports", [1, 1000, 10**12])
def test_counts_that_no_reports_give_have_intervals(epsilon, reports):
    """All in one counter, all or none in those of one candidate, or far too uneven; warnings are errors."""
    mechanism = LocalHash.from_epsilon(epsilon, 26 * 30 if epsilon < 1 else None)
    functions, width = hash_functions_of(mechanism, 3), mechanism.width
    own = buckets_of(functions.words(ABSENT[:1]), functions)[0]
    own = np.arange(mechanism.hash_functions) * mechanism.hash_buckets + own
    single, all_own, none_own = (
        np.zeros(width, int),
        np.zeros(width, int),
        np.full(width, 1 + reports // width),
    )
    single[7], all_own[own], none_own[own] = reports, 1 + reports // len(own), 0
    uneven = generator(1).pareto(0.5, width) * reports / width
    for counts in (single, all_own, none_own, np.minimum(uneven, 1e12).astype(int) + 1):
        result = decode_hashed(counts, ABSENT[:40], mechanism, 3)
        assert result.for_all is not None
        assert (result.for_all.low <= result.low).all()
        assert (result.low < result.high).all()
        assert (result.high <= result.for_all.high).all()
        assert result.for_all.low.min() >= 0
        assert result.for_all.high.max() <= 1


def test_rare_jumps_make_no_single_support_rare():
    """A third of a support is expected, and in one of 100,000 windows a client adds 21 at once.

    Defect caught: the correction for jumps at a saddlepoint between two counts put P(S >= 1) at 0.02.
    """
    column = np.ones(1)
    spread = 1e-5 * 21**2 * column
    test = SupportTest(column, 1000, 0.9 * column, 3e-4 * column, spread, spread, jump=21.0)
    tail = erfc(test.deviates_of_absent()[0] / np.sqrt(2)) / 2
    assert 1 - np.exp(-0.3) <= tail < 2 * (1 - np.exp(-0.3))


@pytest.mark.all
def test_largest_shifts_of_an_unlisted_text_are_covered():
    """A fifth of 1,000 reports is unlisted, with 256 functions; of 80 runs at most 13 miss a candidate.

    More miss with probability 1e-3 if 7 % do. The seed is fixed. Defect caught: intervals that reached .84 of
    the noise beyond the largest shift, as of values with two-sided ones, missed a candidate in 25 %.
    """
    mechanism = LongitudinalHash.from_epsilons(15.0, 8.0)
    held, texts = np.append(np.full(20, 40), 200), [*(f"text-{i}" for i in range(20)), "stranger"]
    candidates = texts[:20] + ABSENT[:180]
    functions, rng = hash_functions_of(mechanism, 0), generator(4)
    buckets = buckets_of(functions.words(texts), functions)
    truth, missed = np.append(np.full(20, 0.04), np.zeros(180)), np.zeros(200)
    for _ in range(80):
        found = decode_hashed(fixed_counts(held, buckets, mechanism, rng), candidates, mechanism, 0)
        missed += (truth < found.low) | (found.high < truth)
    assert missed.max() <= 13
