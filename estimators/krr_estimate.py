"""Frequencies from counts of k-RR reports: linear inversion, exact maximum likelihood, error bars."""

import numpy as np
from numpy.typing import NDArray

from estimators.estimate import QUANTILE_975, Estimate, FloatArray, shown_interval
from estimators.krr import KRR
from estimators.significance import benjamini_hochberg, binomial_tail

ESTIMATORS = ("mle", "inv")


def estimate(counts: NDArray[np.int64], mechanism: KRR, estimator: str = "mle") -> Estimate:
    """Estimate how often each value was true, with 95 % intervals and significance.

    Point estimates are `mle` or `inv`; standard errors and intervals are those of `inv` always, since
    intervals around a constrained estimate do not cover. Significant: more reports than other values' lies
    explain, by the binomial tail.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : KRR that made the reports.
    estimator : "mle" or "inv".

    Returns
    -------
    Estimate with arrays of shape (k,).

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0, or the estimator is unknown.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator}")
    reports = _count_reports(counts, mechanism)
    inverted = inv(counts, mechanism)
    frequency = mle(counts, mechanism) if estimator == "mle" else inverted
    low, high = shown_interval(*score_interval(inverted, reports, mechanism), frequency)
    return Estimate(
        estimator=estimator,
        reports=reports,
        frequency=frequency,
        std_error=std_error(inverted, reports, mechanism),
        low=low,
        high=high,
        significant=benjamini_hochberg(binomial_tail(counts, reports, mechanism.q)),
    )


def inv(counts: NDArray[np.int64], mechanism: KRR) -> FloatArray:
    """Invert the channel: theta = (phi - q) / (p - q), phi the share of reports.

    Unbiased, so entries may be negative or above 1; they sum to 1.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : KRR that made the reports.

    Returns
    -------
    float64 array (k,), fractions of all reports.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0.

    Source: Pinzón et al. (arXiv 2601.08603), "Linear inversion".
    """
    reports = _count_reports(counts, mechanism)
    return (counts / reports - mechanism.q) / mechanism.contrast


def mle(counts: NDArray[np.int64], mechanism: KRR) -> FloatArray:
    """Maximize the likelihood over all distributions: MLE*, exact and unique.

    With the t smallest shares set to q and the others rescaled by c = (1 - t q) / sum of the others, it is
    the inversion of that, for the smallest t that leaves none negative: c phi_(t+1) >= q.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : KRR that made the reports.

    Returns
    -------
    float64 array (k,), >= 0, summing to 1.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0.

    Source: Pinzón et al. (arXiv 2601.08603), theorem 1.
    """
    _count_reports(counts, mechanism)
    ascending = np.sort(counts)
    kept_sums = np.cumsum(ascending[::-1])[::-1]
    kept_mass = 1 - np.arange(mechanism.k) * mechanism.q
    # The condition is false up to some t and true from there on, and takes equal counts together: moving
    # one count x from the kept to the zeros takes q x from both sides of kept_mass x >= q kept_sum.
    zeros = int(np.argmax(kept_mass * ascending >= mechanism.q * kept_sums))
    rescaled = counts * (kept_mass[zeros] / kept_sums[zeros])
    frequency: FloatArray = np.maximum((rescaled - mechanism.q) / mechanism.contrast, 0)
    return frequency


def std_error(frequency: FloatArray, reports: int, mechanism: KRR) -> FloatArray:
    """Return the standard error of `inv`, the true values being fixed and only the noise random.

    sqrt((f p (1-p) + (1-f) q (1-q)) / N) / (p - q), with f clipped to [0, 1].

    Parameters
    ----------
    frequency : float64 array (n,), estimated or true frequencies.
    reports : N, >= 1.
    mechanism : KRR that made, or will make, the reports.

    Returns
    -------
    float64 array (n,), fractions of all reports, > 0.
    """
    base, slope = _noise(mechanism)
    return np.sqrt((base + slope * np.clip(frequency, 0, 1)) / reports)


def score_interval(inverted: FloatArray, reports: int, mechanism: KRR) -> tuple[FloatArray, FloatArray]:
    """Compute the 95 % interval of all f not rejected by the estimate: |x - f| <= z standard errors at f.

    The variance a + b f is linear in f, so the ends are x + z² b/2 ± z sqrt(a + b x + z² b²/4); a + b x >= 0
    for every share of reports in [0, 1].

    Parameters
    ----------
    inverted : float64 array (n,), x, from `inv`.
    reports : N, >= 1.
    mechanism : KRR that made the reports.

    Returns
    -------
    low and high, float64 arrays (n,), not clipped.

    Source: Wilson, J. Am. Statist. Assoc. 22 (1927), for the variance of k-RR.
    """
    base, slope = (term / reports for term in _noise(mechanism))
    shift = QUANTILE_975**2 * slope / 2
    half = QUANTILE_975 * np.sqrt(base + slope * inverted + shift * slope / 2)
    return inverted + shift - half, inverted + shift + half


def _noise(mechanism: KRR) -> tuple[float, float]:
    """Return a and b of the variance (a + b f) / N of one entry of `inv`."""
    p, q, contrast = mechanism.p, mechanism.q, mechanism.contrast
    return q * (1 - q) / contrast**2, (1 - p - q) / contrast


def _count_reports(counts: NDArray[np.int64], mechanism: KRR) -> int:
    """Check counts, and return their sum (N)."""
    if counts.shape != (mechanism.k,):
        raise ValueError(f"counts must have shape ({mechanism.k},), got {counts.shape}")
    if counts.min() < 0:
        raise ValueError(f"counts must not be negative, got {counts.min()}")
    reports = int(counts.sum())
    if reports == 0:
        raise ValueError("counts must hold at least 1 report, got 0")
    return reports
