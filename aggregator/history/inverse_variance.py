"""Shares that were estimated several times, joined by inverse variance.

Rule: it joins unconstrained estimates, which are unbiased. Most likely ones are clipped at 0, so a mean of
them is biased where values are rare. Weights follow from errors, not from shares. The variance of a share
depends on the share itself, but by so little that the bias is about one in the square root of a value's
reports of its standard error.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc  # of scipy.special: scipy.stats takes half a second to load

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.intervals.unified import unified_interval
from deniable.estimators.frequency.significance import benjamini_hochberg, normal_tail


@dataclass(frozen=True, eq=False)
class WeightedShares:
    """Shares of n values of m parts, joined. Arrays (n,); shares and errors are fractions of all reports.

    Parameters
    ----------
    share : float64, the means, weighted by inverse variance; may be negative or above 1.
    std_error, low, high : float64, if every report comes from another client; 95 % intervals within [0, 1].
    shared_std_error, shared_low, shared_high : float64, whatever the parts have in common.
    significant : bool, share above 0 by the shared errors, at a false-discovery rate of 5 %.
    parts : int64, how many parts have the value.
    p_value : float64, of the test that all parts have the same share, in [0, 1]; 1 for one part.
    differs : bool, that test rejected, at a false-discovery rate of 5 % among the values of several parts.
        It allows for the randomizers' noise alone, not for other people in each part.
    """

    share: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    shared_std_error: FloatArray
    shared_low: FloatArray
    shared_high: FloatArray
    significant: NDArray[np.bool_]
    parts: NDArray[np.int64]
    p_value: FloatArray
    differs: NDArray[np.bool_]


def join_shares(
    shares: FloatArray, std_errors: FloatArray, shared_errors: FloatArray, misfits: FloatArray
) -> WeightedShares:
    """Join shares of m parts whose reports are disjoint.

    The error of independent reports is 1 / sqrt(sum of 1 / e²), with misfits, which are alike in all parts,
    added up instead of their squares. Noise that clients keep may be the same in several parts. The
    standard deviation of a sum is at most the sum of those of its terms, so the shared error is the weighted
    mean of the parts' shared errors, or the error of independent reports where no part has a larger shared
    error than that.

    Parameters
    ----------
    shares : float64 (m, n), unbiased; NaN where a part lacks a value. Each value is in a part at least.
    std_errors, shared_errors : float64 (m, n), > 0; inf where nothing is known.
    misfits : float64 (m, n), >= 0, the part of `std_errors` that unlisted strings cause; 0 without.

    Raises
    ------
    ValueError if shapes differ or a value is in no part.

    Source: Cochran, "The combination of estimates from different experiments", Biometrics 10 (1954).
    """
    shapes = {each.shape for each in (shares, std_errors, shared_errors, misfits)}
    if len(shapes) != 1 or shares.ndim != 2:
        raise ValueError(f"shares and errors must have one shape (m, n), got {sorted(shapes)}")
    has = ~np.isnan(shares)
    if not has.any(axis=0).all():
        raise ValueError("each value must be in a part at least, and some are in none")
    known = has & np.isfinite(std_errors)
    weight = weights_of(shares, std_errors)
    share = np.sum(weight * np.where(has, shares, 0), axis=0)
    used = weight > 0

    def weighted(errors: FloatArray) -> FloatArray:
        used_errors: FloatArray = np.where(used, errors, 0)
        return np.asarray(weight * used_errors, np.float64)

    sampling = np.sqrt(np.maximum(np.where(known, std_errors, np.inf) ** 2 - misfits**2, 0))
    error = np.sqrt((weighted(sampling) ** 2).sum(axis=0) + weighted(misfits).sum(axis=0) ** 2)
    is_shared = (used & (shared_errors > std_errors)).any(axis=0)
    shared = np.where(is_shared, np.maximum(weighted(shared_errors).sum(axis=0), error), error)
    low, high = unified_interval(share, error)
    shared_low, shared_high = unified_interval(share, shared)
    p_value, several = _equality(shares, shared_errors, share, known), known.sum(axis=0) > 1
    differs = np.zeros(len(share), bool)
    if several.any():
        differs[several] = benjamini_hochberg(p_value[several])
    return WeightedShares(
        share=share,
        std_error=error,
        low=low,
        high=high,
        shared_std_error=shared,
        shared_low=shared_low,
        shared_high=shared_high,
        significant=benjamini_hochberg(normal_tail(share / shared)),
        parts=has.sum(axis=0),
        p_value=p_value,
        differs=differs,
    )


def weights_of(shares: FloatArray, std_errors: FloatArray) -> FloatArray:
    """Return the weights of m parts, float64 (m, n), which sum to 1 for each value; see `join_shares`.

    Parts weigh the same where no error of a value is known.
    """
    has = ~np.isnan(shares)
    known = has & np.isfinite(std_errors)
    weight = np.where(known, 1 / np.where(known, std_errors, 1) ** 2, 0)
    weight = np.where(weight.sum(axis=0) == 0, has, weight)
    found: FloatArray = weight / weight.sum(axis=0)
    return found


def _equality(
    shares: FloatArray, errors: FloatArray, share: FloatArray, known: NDArray[np.bool_]
) -> FloatArray:
    """P-values of Cochran's test, with m - 1 degrees: the sum of squared distances in standard errors.

    About the mean that is weighted by the same errors: about any other one, the sum would be larger.
    """
    known = known & np.isfinite(errors)
    weight = np.where(known, 1 / np.where(known, errors, 1) ** 2, 0)
    total = weight.sum(axis=0)
    filled = np.where(known, shares, 0)
    mean = np.where(total > 0, (weight * filled).sum(axis=0) / np.where(total > 0, total, 1), share)
    statistic = (weight * np.where(known, shares - mean, 0) ** 2).sum(axis=0)
    degrees = np.maximum(known.sum(axis=0) - 1, 0)
    found: FloatArray = np.where(degrees > 0, chdtrc(np.maximum(degrees, 1), statistic), 1.0)
    return found
