"""The total frequency of all buckets that a list of the largest estimates leaves out."""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import QUANTILE_975, Estimate
from deniable.estimators.frequency.intervals.two_binomials import TwoBinomials
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.traits import SymmetricChannel, ValueBits

# Half width of the kernel that estimates the density of counts at the cut, in standard deviations.
_BANDWIDTH = 1 / 8


class Rest(NamedTuple):
    """What a list leaves out, fractions of all reports.

    Parameters
    ----------
    frequency, std_error : in [0, 1], of k-hot RAPPOR in [0, hot], and >= 0.
    low, high : 95 % interval, low <= frequency <= high.
    """

    frequency: float
    std_error: float
    low: float
    high: float


class Lift(NamedTuple):
    """The sum of the noise in the shown counts: its estimate, the variance of that, and bounds of the sum."""

    sum: float
    variance: float
    least: float
    most: float


def rest_of_symmetric(
    counts: NDArray[np.int64], entries: int, shown: NDArray[np.intp], mechanism: SymmetricChannel
) -> Rest:
    """Estimate the share of reports whose true value is none of those shown, for k-RR.

    A set of s buckets chosen independently of the counts inverts like one bucket, with
    P(report in | truth in) = 1 - (k - s) q and P(report in | truth out) = s q. The shown buckets were chosen
    by these counts; `_lifted` corrects that selection bias. The interval is `TwoBinomials` of the count that
    the bounds of that correction give.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    entries : number of values that can be shown, the first ones: k, or k - 1 with a bucket `other`.
    shown : integer array, indices of the values shown, fewer than entries: those with the largest counts,
        ties broken by the lower index.
    mechanism : k-RR, longitudinal or not, of the reports.

    Returns
    -------
    Rest; all of the reports, without an error, if no value is shown.
    """
    if not len(shown):
        return Rest(1.0, 0.0, 1.0, 1.0)
    reports, channel = int(counts.sum()), Inversion.of_symmetric(mechanism)
    variance = _variance(counts, reports, channel)
    lift = _lifted(counts[:entries], variance[:entries], shown)
    missed, strayed = len(shown) * mechanism.q, (mechanism.k - len(shown)) * mechanism.q
    inside = reports - float(counts[shown].sum())
    frequency = float(np.clip(((inside + lift.sum) / reports - strayed) / channel.contrast, 0, 1))
    noise = frequency * missed * (1 - missed) + (1 - frequency) * strayed * (1 - strayed)
    error = float(np.sqrt(reports * noise + lift.variance)) / (reports * channel.contrast)
    test = TwoBinomials(reports, 1 - missed, strayed, channel.contrast)
    return Rest(frequency, error, *_ends(test, inside, lift, frequency, 1))


def rest_of_bits(
    ones: NDArray[np.int64], reports: int, entries: int, shown: NDArray[np.intp], mechanism: ValueBits
) -> Rest:
    """Estimate the mean number of buckets not shown per report, for one-hot and k-hot RAPPOR.

    The noise is independent across bits, so the variances of a fixed set of buckets add up, and the sum of
    their counts is that of two binomials, too; see `rest_of_symmetric`.

    Parameters
    ----------
    ones : int64 array (buckets,), reports with each bit set.
    reports : N, >= 1.
    entries : number of buckets that can be shown, the first ones.
    shown : integer array, indices of the buckets shown, fewer than entries: those with the largest counts,
        ties broken by the lower index.
    mechanism : of the reports.

    Returns
    -------
    Rest.
    """
    channel = Inversion.of_bit(mechanism)
    variance = _variance(ones, reports, channel)
    lift = _lifted(ones[:entries], variance[:entries], shown)
    left = np.delete(np.arange(len(ones)), shown)
    inside = float(ones[left].sum())
    frequency = ((inside + lift.sum) / reports - len(left) * channel.miss) / channel.contrast
    frequency = float(np.clip(frequency, 0, mechanism.max_values))
    error = float(np.sqrt(variance[left].sum() + lift.variance)) / (reports * channel.contrast)
    test = TwoBinomials(reports * len(left), channel.hit, channel.miss, channel.contrast)
    low, high = _ends(test, inside, lift, frequency / len(left), mechanism.max_values / len(left))
    return Rest(frequency, error, low * len(left), high * len(left))


def _ends(
    test: TwoBinomials, inside: float, lift: Lift, frequency: float, most: float
) -> tuple[float, float]:
    """Return the interval of the share of the left-out buckets, whose reports are `inside`."""
    counts = np.clip(inside + np.array([lift.least, lift.most]), 0, test.reports)
    found = test.interval(counts)
    return min(frequency, float(found.low[0])), max(frequency, min(most, float(found.high[1])))


def rest_of_candidates(estimate: Estimate, shown: NDArray[np.intp]) -> tuple[float, float]:
    """Add the candidates not shown to the background, for Bloom RAPPOR with a background.

    The background already includes the candidates that screening did not choose; their own estimate is 0.
    The error is an upper bound: the sum of the errors, as if all were fully correlated.

    Parameters
    ----------
    estimate : Estimate of all candidates, with `other`.
    shown : integer array, indices of the candidates shown.

    Returns
    -------
    Frequency in [0, 1] and a bound on its standard error, fractions of all reports; the error is inf where
    that of a candidate is.

    Raises
    ------
    ValueError if the estimate has no background.
    """
    if estimate.other is None:
        raise ValueError("estimate must have a background: other must not be None")
    is_added = np.ones(len(estimate.frequency), bool)
    is_added[shown] = False
    if "chosen" in estimate.diagnostics:
        is_added &= estimate.frequency > 0
    frequency, error = estimate.other
    return (
        float(np.clip(frequency + estimate.frequency[is_added].sum(), 0, 1)),
        float(error + estimate.std_error[is_added].sum()),
    )


def rest_of_hashed(
    estimate: Estimate, shown: NDArray[np.intp], mechanism: FunctionPool
) -> tuple[float, float]:
    """Estimate the share of reports whose true value is none of those shown, for local hashing.

    The supports of different candidates are uncorrelated, so the variances of those shown add up.

    Parameters
    ----------
    estimate : Estimate of all candidates, with `supports`.
    shown : integer array, indices of the candidates shown: those with the largest supports, ties broken by
        the lower index.
    mechanism : of the reports, local hashing with or without permanent responses.

    Returns
    -------
    Frequency in [0, 1] and its standard error, fractions of all reports.

    Raises
    ------
    ValueError if the estimate has no supports.
    """
    if estimate.supports is None:
        raise ValueError("estimate must be of local hashing: supports must not be None")
    scale = estimate.reports * mechanism.contrast
    variance = (estimate.std_error * scale) ** 2
    lift = _lifted(estimate.supports, variance, shown)
    inside = float(estimate.supports[shown].sum()) - lift.sum
    listed = (inside - estimate.reports * len(shown) * mechanism.miss) / scale
    return float(np.clip(1 - listed, 0, 1)), float(np.sqrt(variance[shown].sum() + lift.variance)) / scale


def _variance(counts: NDArray[np.int64], reports: int, channel: Inversion) -> FloatArray:
    """Variance of each count for fixed true values."""
    error = channel.std_error(channel.frequency(counts / reports), reports)
    variance: FloatArray = (error * reports * channel.contrast) ** 2
    return variance


def _lifted(counts: NDArray[np.int64], variance: FloatArray, shown: NDArray[np.intp]) -> Lift:
    """Estimate the selection bias: the sum of the noise in the shown counts.

    Buckets are shown because their noisy count is at least c, so their noise is positive on average. For a
    count n with mean m and Poisson noise, and likewise for normal noise of variance v,

        E[(n - m) [n >= c]] = m P(n = c - 1) = c P(n = c) = v P(n = c),

    so the sum of v over all buckets with count c is an unbiased estimate, whatever the true values are. Large
    counts are sparse, so the number of buckets with count c is replaced by a kernel estimate: the buckets
    within a narrow and within a wide window around c, weighted so that the curvature of the density cancels.
    The bucket that sets the cut is left out. Ties are broken by the lower index, so behind the last one shown
    the cut is c + 1.

    Bounds: where v is below 64, `_most_lifted` and 0. The latter is rigorous: for the truly smallest buckets
    L0, as many as those left out L, n(L) <= n(L0) and E n(L0) <= E n(L), so the noise of L is at most that
    of the fixed set L0. Elsewhere both are 1.96 standard errors of the sum away.

    Source: Robbins, Proc. 3rd Berkeley Symposium 1 (1956), for the identity of Poisson counts.
    """
    if len(shown) == 0:
        return Lift(0.0, 0.0, 0.0, 0.0)
    last = int(shown[np.lexsort((shown, -counts[shown]))[-1]])
    deviation = float(np.sqrt(variance[last]))
    distance = np.abs(counts - counts[last] - (np.arange(len(counts)) > last))
    width = int(_BANDWIDTH * deviation)
    narrow, wide = width * (width + 1), 2 * width * (2 * width + 1)  # curvature enters in these proportions
    weight = wide / (wide - narrow) if width else 1.0
    density = np.where(distance <= width, weight / (2 * width + 1), 0.0)
    density += np.where(distance <= 2 * width, (1 - weight) / (4 * width + 1), 0.0)
    near = density * variance
    near[last] = 0.0
    lifted = max(0.0, float(near.sum()))
    # Added to the Poisson noise of `near`: the higher the cut, the more the shown buckets' noise varies.
    height = max(0.0, -NormalDist().inv_cdf(len(shown) / len(counts)))
    doubt = float(near @ near) + lifted * deviation * height
    if width == 0:
        most = _most_lifted(counts, shown)
        return Lift(min(lifted, most), doubt, 0.0, most)
    half = QUANTILE_975 * float(np.sqrt(doubt))
    return Lift(lifted, doubt, max(0.0, lifted - half), lifted + half)


def _most_lifted(counts: NDArray[np.int64], shown: NDArray[np.intp]) -> float:
    """Return a bound of what noise has added to the shown counts, from those that are hardly shown.

    For a sum n of independent reports, each of a probability of its own, E[m [n < c]] <= E[n [n <= c]],
    where m is its mean: the means of what is left out are at most its counts, and those of the buckets that
    one report fewer would leave out. Their numbers are taken for Poisson counts, at upper 97.5 % bounds.

    Source: Good, "The population frequencies of species" (Biometrika 40, 1953), where c is 1.
    """
    is_left = np.ones(len(counts), np.bool_)
    is_left[shown] = False
    if not is_left.any():
        return 0.0
    left = np.flatnonzero(is_left)
    first = int(left[counts[left].argmax()])  # of equal counts, the lowest index
    count, is_behind = int(counts[first]), shown > first
    equal = int(np.count_nonzero((counts[shown] == count) & ~is_behind))
    above = int(np.count_nonzero((counts[shown] == count + 1) & is_behind))
    return float(count * _most_expected(equal) + (count + 1) * _most_expected(above))


def _most_expected(count: int) -> float:
    """Return the upper 97.5 % bound of a Poisson count's mean."""
    return float(gammaincinv(count + 1, 0.975))
