"""Frequencies of buckets from the bit counts of one-hot and k-hot RAPPOR reports, by maximum likelihood."""

from functools import partial

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.bit_rates import extract_rates
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import benjamini_hochberg, binomial_tail
from deniable.estimators.mechanisms.traits import BitChannel, ValueBits

# Bisections of the multiplier's bracket: to 2^-100 of its width, beyond float precision.
_HALVINGS = 100


def decode_hot(
    bit_counts: NDArray[np.int64], cohort_sizes: NDArray[np.int64], mechanism: ValueBits
) -> Estimate:
    """Estimate the share of reports from clients in each bucket, with 95 % intervals and significance.

    Point estimate: `most_likely_shares` with sum <= max_values. Errors and intervals: those of each bit's
    debiased rate (`bit_rates`). A bucket is significant if its count exceeds what clients outside it explain,
    by the binomial tail and Benjamini-Hochberg at 5 %.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1; bits beyond the buckets are ignored.
    cohort_sizes : int64 array (1,), number of reports (N), >= 1.
    mechanism : of the reports.

    Returns
    -------
    Estimate with arrays of shape (buckets,), fractions of all reports, summing to at most `max_values`.

    Raises
    ------
    ValueError if shapes do not match, there is no report, or a count is negative or above the reports.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 2.1, "Basic One-time RAPPOR".
    """
    if bit_counts.shape != (1, mechanism.bits):
        raise ValueError(f"bit_counts must have shape {(1, mechanism.bits)}, got {bit_counts.shape}")
    ones = bit_counts[:, : mechanism.buckets]
    rates = extract_rates(ones, cohort_sizes, mechanism)
    reports = int(cohort_sizes[0])
    frequency = most_likely_shares(ones[0] / reports, mechanism, mechanism.max_values)
    channel, rate = Inversion.of_bit(mechanism), rates.rate[0]
    low, high, for_all = shown_intervals(partial(channel.score_interval, rate, reports), frequency)
    return Estimate(
        estimator="mle",
        reports=reports,
        frequency=frequency,
        std_error=rates.std_error[0],
        low=low,
        high=high,
        significant=benjamini_hochberg(binomial_tail(ones[0], reports, mechanism.p_star)),
        unbiased=rate,
        for_all=for_all,
    )


def most_likely_shares(ones_share: FloatArray, channel: BitChannel, mass: float) -> FloatArray:
    """Maximize the independent-bit likelihood on {0 <= theta <= 1, sum theta <= mass}, one bit per bucket.

    Let m >= 0 be the Lagrange multiplier of the sum. Each bit is separate, with a = `ones_share`,
    lambda = p* + c theta and c = q* - p*:

        c (lambda - a) + m lambda (1 - lambda) = 0,  so  lambda = 2 c a / (c + m + sqrt((c + m)² - 4 m c a)),

    clipped to [p*, q*]. Every theta falls as m rises, so m is the root of sum theta = mass, or 0.

    Parameters
    ----------
    ones_share : float64 array (n,), share of reports that show a 1, in [0, 1].
    channel : BitChannel of the reports.
    mass : largest number of buckets that one client is in, > 0.

    Returns
    -------
    float64 array (n,), each in [0, 1], with sum at most `mass` up to rounding.
    """
    p_star, contrast = channel.p_star, channel.q_star - channel.p_star

    def shares(multiplier: float) -> FloatArray:
        level = contrast + multiplier
        root = np.sqrt(np.maximum(level**2 - 4 * multiplier * contrast * ones_share, 0))
        rate = 2 * contrast * ones_share / (level + root)
        share: FloatArray = np.clip((rate - p_star) / contrast, 0, 1)
        return share

    if shares(0.0).sum() <= mass:
        return shares(0.0)
    # At m = c / p* every theta is 0, even for a = 1: c (p* - a) + m p* (1 - p*) >= 0.
    low, high = 0.0, contrast / p_star
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if shares(middle).sum() > mass else (low, middle)
    return shares(high)
