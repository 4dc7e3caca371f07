"""Tests for forged reports: p-values under the hypothesis that all reports come from the randomizer.

Each p-value is valid whatever the true values are: for honest reports P(p-value <= x) <= x. All tests assume
that each report is from a different client. No test can detect a client that runs the randomizer on a chosen
value: its report is distributed like an honest one of a client with that value (docs/poisoning.md).
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc, chdtrc, kl_div

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor

# Expected count per cell from which the false-alarm rate of a likelihood ratio is within 20 % of nominal.
LEAST_EXPECTED = 50
# Tail probability of a binomial that is not summed, but added to the p-value.
_LEFT_OUT = 1e-15


def true_ones(mechanism: Rappor | HotRappor) -> tuple[int, int]:
    """Return the least and largest number of true bits that are 1; hashes of a Bloom filter may collide."""
    return mechanism.min_ones, mechanism.ones


def popcount_p_value(popcounts: NDArray[np.int64], mechanism: Rappor | HotRappor) -> float:
    """Test the popcounts of a pack's reports, in total and individually.

    The popcount of a report with s true ones is Bin(s, q*) + Bin(bits - s, p*), stochastically increasing in
    s. So the lower tail of the sum over n reports is largest when every s is least, and the upper tail when
    every s is largest; these bound the tails for any population. The same holds for each report. Bonferroni:
    the smallest individual p-value of each side is multiplied by n, and the smallest of the four by 4.

    Parameters
    ----------
    popcounts : int64 array (n,), n >= 1, each in [0, bits].
    mechanism : RAPPOR mechanism of the reports.

    Returns
    -------
    p-value in [0, 1].

    Raises
    ------
    ValueError if there is no report.
    """
    reports = len(popcounts)
    if reports == 0:
        raise ValueError("popcounts must hold at least 1 report, got 0")
    least, most = true_ones(mechanism)
    total, lowest, highest = int(popcounts.sum()), int(popcounts.min()), int(popcounts.max())
    tails = (
        _at_most(total, reports * least, reports, mechanism),
        _at_least(total, reports * most, reports, mechanism),
        reports * _at_most(lowest, least, 1, mechanism),
        reports * _at_least(highest, most, 1, mechanism),
    )
    return min(1.0, 4 * min(tails))


def cohort_p_value(cohort_sizes: NDArray[np.int64]) -> float:
    """Test whether clients are uniformly distributed over cohorts: likelihood ratio, chi-square.

    Parameters
    ----------
    cohort_sizes : int64 array (cohorts,), reports of each cohort in one window.

    Returns
    -------
    p-value in [0, 1]; 1 with a single cohort, or fewer than LEAST_EXPECTED reports per cohort.
    """
    cohorts, expected = len(cohort_sizes), cohort_sizes.mean()
    if cohorts == 1 or expected < LEAST_EXPECTED:
        return 1.0
    ratio = 2 * kl_div(cohort_sizes, expected).sum()
    return float(_chi_square_tail(ratio, cohorts - 1))


def impossible_p_values(
    counts: NDArray[np.int64], reports: NDArray[np.int64], hit: float, miss: float
) -> FloatArray:
    """Test for counts that no population explains: estimates below 0 or above 1 by more than the noise.

    With n of N clients in the bucket, a count is Bin(n, hit) + Bin(N - n, miss). Whatever n is, its lower
    tail is at most that of Bin(N, miss) and its upper tail at most that of Bin(N, hit). Reports forged for
    one value are missing from the others, whose counts fall below what honest noise alone would give.

    Parameters
    ----------
    counts : int64 array, reports of a bucket, or with a bit set.
    reports : int64 array that broadcasts with it, N, each >= the count.
    hit : p of k-RR, q* of a RAPPOR bit; in (miss, 1).
    miss : q of k-RR, p* of a RAPPOR bit; in (0, hit).

    Returns
    -------
    float64 array of the broadcast shape, a p-value for each count, in [0, 1]; combine m of them as m times
    the smallest (Bonferroni).
    """
    tails = np.minimum(bdtr(counts, reports, miss), bdtrc(counts - 1, reports, hit))
    p_values: FloatArray = np.minimum(1.0, 2 * tails)
    return p_values


def change_p_value(before: NDArray[np.int64], after: NDArray[np.int64]) -> float:
    """Test whether two windows of k-RR have the same distribution: likelihood ratio of 2 x k counts.

    A true change raises an alarm like a forged one: this shows when to look. Buckets that expect fewer than
    LEAST_EXPECTED reports in the smaller window are taken together, or left out if they are fewer even then.

    Parameters
    ----------
    before, after : int64 arrays (k,), reports per bucket.

    Returns
    -------
    p-value in [0, 1]; 1 where fewer than two buckets are left.
    """
    together = np.stack([before, after]).astype(np.float64)
    sizes = together.sum(axis=1)
    if sizes.min() == 0:
        return 1.0
    expected = together.sum(axis=0) * sizes.min() / sizes.sum()
    is_rare = expected < LEAST_EXPECTED
    cells = together[:, ~is_rare]
    if expected[is_rare].sum() >= LEAST_EXPECTED:
        cells = np.column_stack([cells, together[:, is_rare].sum(axis=1)])
    if cells.shape[1] < 2:
        return 1.0
    fitted = np.outer(cells.sum(axis=1), cells.sum(axis=0)) / cells.sum()
    return float(_chi_square_tail(2 * kl_div(cells, fitted).sum(), cells.shape[1] - 1))


def change_p_values(
    before: NDArray[np.int64],
    before_sizes: NDArray[np.int64],
    after: NDArray[np.int64],
    after_sizes: NDArray[np.int64],
) -> FloatArray:
    """Test the same for each bit of RAPPOR separately, because the bits of a report are dependent.

    Parameters
    ----------
    before, after : int64 arrays (cohorts, bits), reports with a bit set.
    before_sizes, after_sizes : int64 arrays (cohorts,), reports.

    Returns
    -------
    float64 array (cohorts, bits), a p-value for each bit; combine m of them as m times the smallest
    (Bonferroni). 1 where fewer than LEAST_EXPECTED ones, or zeros, are expected.
    """
    sizes = np.stack([before_sizes, after_sizes])[:, :, None].astype(np.float64)
    ones = np.stack([before, after])
    share = ones.sum(axis=0) / np.maximum(1, sizes.sum(axis=0))
    expected_ones, expected_zeros = sizes * share, sizes * (1 - share)
    ratio = 2 * (kl_div(ones, expected_ones) + kl_div(sizes - ones, expected_zeros)).sum(axis=0)
    enough = np.minimum(expected_ones, expected_zeros).min(axis=0) >= LEAST_EXPECTED
    return np.where(enough, _chi_square_tail(ratio, 1), 1.0)


def _chi_square_tail(ratio: FloatArray, degrees: int) -> FloatArray:
    """P(chi-square > ratio); rounding may leave a ratio a little below 0."""
    tail: FloatArray = chdtrc(degrees, np.maximum(ratio, 0.0))
    return tail


def _at_most(total: int, ones: int, reports: int, mechanism: Rappor | HotRappor) -> float:
    """P(total popcount <= `total`) of `reports` reports with `ones` true ones in total."""
    hits, probability = _hits(ones, mechanism.q_star)
    zeros = reports * mechanism.width - ones
    tails = np.where(hits <= total, bdtr(np.clip(total - hits, 0, zeros), zeros, mechanism.p_star), 0)
    return min(1.0, float(probability @ tails) + 2 * _LEFT_OUT)


def _at_least(total: int, ones: int, reports: int, mechanism: Rappor | HotRappor) -> float:
    """P(total popcount >= `total`) of `reports` reports with `ones` true ones in total."""
    hits, probability = _hits(ones, mechanism.q_star)
    zeros = reports * mechanism.width - ones
    tails = np.where(hits < total, bdtrc(np.clip(total - 1 - hits, 0, zeros), zeros, mechanism.p_star), 1)
    return min(1.0, float(probability @ tails) + 2 * _LEFT_OUT)


@lru_cache(64)
def _hits(ones: int, hit: float) -> tuple[FloatArray, FloatArray]:
    """Return numbers of true ones reported as 1, and their probabilities, without either tail of 1e-15."""
    if ones == 0:
        return np.zeros(1), np.ones(1)
    from scipy.stats import binom  # here, since to import it takes a third of a second

    first, last = binom.ppf(_LEFT_OUT, ones, hit), binom.isf(_LEFT_OUT, ones, hit)
    hits = np.arange(max(0.0, first), last + 1)
    return hits, binom.pmf(hits, ones, hit)
