"""Frequencies of buckets from the bit counts of one-hot and k-hot RAPPOR reports, where a bit is a bucket."""

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.decoding.bit_rates import extract_rates
from estimators.frequency.estimate import Estimate, shown_interval
from estimators.frequency.significance import benjamini_hochberg, binomial_tail
from estimators.mechanisms.channels import BitChannel
from estimators.mechanisms.rappor_hot import HotRappor

# Halvings of the multiplier's bracket: to 2^-100 of its width, beyond what a float can show.
_HALVINGS = 100


def decode_hot(
    bit_counts: NDArray[np.int64], cohort_sizes: NDArray[np.int64], mechanism: HotRappor
) -> Estimate:
    """Estimate which share of the reports comes from clients in each bucket, with intervals and significance.

    Point estimate: `most_likely_shares` under sum <= hot. Error and interval: those of each bit's extracted
    rate, the clients being fixed (`bit_rates`). Significant: more ones than clients outside the bucket
    explain, by the binomial tail.

    Parameters
    ----------
    bit_counts : int64 array (1, bits), reports that show a 1; bits beyond the buckets are left out.
    cohort_sizes : int64 array (1,), number of reports (N), >= 1.
    mechanism : HotRappor that made the reports.

    Returns
    -------
    Estimate with arrays of shape (buckets,); the frequencies sum to at most `hot`.

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
    frequency = most_likely_shares(ones[0] / reports, mechanism, mechanism.hot)
    low, high = shown_interval(rates.low[0], rates.high[0], frequency)
    return Estimate(
        estimator="mle",
        reports=reports,
        frequency=frequency,
        std_error=rates.std_error[0],
        low=low,
        high=high,
        significant=benjamini_hochberg(binomial_tail(ones[0], reports, mechanism.p_star)),
    )


def most_likely_shares(ones_share: FloatArray, channel: BitChannel, mass: float) -> FloatArray:
    """Maximize the independent-bit likelihood on {0 <= theta <= 1, sum theta <= mass}, one bit a bucket.

    With a multiplier m >= 0 for the sum, bit by bit: a = `ones_share`, lambda = p* + c theta, c = q* - p*,

        c (lambda - a) + m lambda (1 - lambda) = 0,  so  lambda = 2 c a / (c + m + sqrt((c + m)² - 4 m c a)),

    clipped to [p*, q*]. Each theta falls as m rises, so m is the root of sum theta = mass, or 0.

    Parameters
    ----------
    ones_share : float64 array (n,), share of reports that show a 1, in [0, 1].
    channel : BitChannel that made the reports.
    mass : most buckets that one client is in, > 0.

    Returns
    -------
    float64 array (n,), each in [0, 1], sum at most `mass` but for rounding.
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
    # At m = c / p* not even a = 1 leaves a theta above 0: c (p* - a) + m p* (1 - p*) >= 0.
    low, high = 0.0, contrast / p_star
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if shares(middle).sum() > mass else (low, middle)
    return shares(high)
