"""Frequencies from counts of k-RR reports: five point estimators, with the errors of linear inversion."""

from bisect import bisect_left
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import Estimate, count_reports
from deniable.estimators.frequency.ibu import ITERATIONS, TOLERANCE, ibu
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import benjamini_hochberg, binomial_tail
from deniable.estimators.frequency.simplex import project_to_simplex
from deniable.estimators.mechanisms.traits import SymmetricChannel

ESTIMATORS = ("mle", "inv", "inv-n", "inv-p", "ibu")


def estimate(
    counts: NDArray[np.int64],
    mechanism: SymmetricChannel,
    estimator: str = "mle",
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Estimate:
    """Estimate the frequency of each value, with 95 % intervals and significance.

    The default `mle` is the safe choice: on the 600 cells of the poster's grid (`make bench-estimators`) its
    mean squared error was never the worst of the three constrained closed forms, while that of `inv-n` was in
    305 cells and that of `inv-p` in 217. It is seldom the best: `inv-p` is best where a few of very many
    values hold nearly all the mass (error up to 860 times smaller), `inv-n` where frequencies are nearly
    equal (up to 250 times).

    Standard errors and intervals are always those of `inv`, because intervals around a constrained estimate
    do not cover; `TwoBinomials` states how often those of `inv` do. A value is significant if its count
    exceeds what false reports of other values explain, by the binomial tail and Benjamini-Hochberg at 5 %.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : k-RR, longitudinal or not, of the reports.
    estimator : "mle", "inv", "inv-n", "inv-p" or "ibu".
    iterations, tolerance : stopping rule of `ibu`, see there; the other estimators ignore them.

    Returns
    -------
    Estimate with arrays of shape (k,), fractions of all reports; `ibu` adds the diagnostics `residual` and
    `iterations`.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0, the estimator is unknown or a parameter of
    `ibu` is out of range.
    """
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator}")
    inversion = Inversion.of_symmetric(mechanism)
    reports = count_reports(counts, mechanism.k)
    inverted = inv(counts, mechanism)
    diagnostics: dict[str, float] = {}
    if estimator == "ibu":
        update = ibu(counts, mechanism, iterations, tolerance)
        frequency = update.frequency
        diagnostics = {"residual": update.residual, "iterations": update.iterations}
    else:
        frequency = _CLOSED_FORMS[estimator](counts, mechanism)
    low, high, for_all = shown_intervals(
        partial(inversion.score_interval, inverted, reports),
        frequency,
        free=1 if mechanism.k == 2 else None,  # the other share is 1 minus this one, and so are its ends
    )
    return Estimate(
        estimator=estimator,
        reports=reports,
        frequency=frequency,
        std_error=inversion.std_error(inverted, reports),
        low=low,
        high=high,
        significant=benjamini_hochberg(binomial_tail(counts, reports, mechanism.q)),
        diagnostics=diagnostics,
        unbiased=inverted,
        for_all=for_all,
    )


def inv(counts: NDArray[np.int64], mechanism: SymmetricChannel) -> FloatArray:
    """Invert the channel: theta = (phi - q) / (p - q), where phi = counts / N.

    Unbiased, so entries may be negative or above 1; they sum to 1.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : k-RR, longitudinal or not, of the reports.

    Returns
    -------
    float64 array (k,), fractions of all reports.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0.

    Source: Pinzón et al. (arXiv 2601.08603), "Linear inversion".
    """
    return Inversion.of_symmetric(mechanism).frequency(counts / count_reports(counts, mechanism.k))


def inv_n(counts: NDArray[np.int64], mechanism: SymmetricChannel) -> FloatArray:
    """Set the negative entries of `inv` to 0 and normalize the rest to sum to 1.

    Parameters, errors and source are those of `inv`.

    Returns
    -------
    float64 array (k,), >= 0, summing to 1.
    """
    positive = np.maximum(inv(counts, mechanism), 0)
    frequency: FloatArray = positive / positive.sum()
    return frequency


def inv_p(counts: NDArray[np.int64], mechanism: SymmetricChannel) -> FloatArray:
    """Project `inv` onto the probability simplex, in the Euclidean norm (Norm-Sub).

    Parameters, errors and source are those of `inv`.

    Returns
    -------
    float64 array (k,), >= 0, summing to 1.
    """
    return project_to_simplex(inv(counts, mechanism))


def mle(counts: NDArray[np.int64], mechanism: SymmetricChannel) -> FloatArray:
    """Maximize the likelihood over all distributions: MLE*, exact and unique.

    Sort the shares phi ascending, set the t smallest to q, rescale the others by c = (1 - t q) / their sum,
    and invert, for the smallest t with c phi_(t+1) >= q, so that no entry is negative. Let S be the sum of
    the counts n of the m = k - t values kept. Since 1 - t q = m q + (p - q), the inversion is

        (n + q / (p - q) (m n - S)) / S.

    The only difference, m n - S, is of integers, so nothing cancels however close p is to q.

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : k-RR, longitudinal or not, of the reports.

    Returns
    -------
    float64 array (k,), >= 0, summing to 1.

    Raises
    ------
    ValueError if counts is not of shape (k,), negative or all 0.

    Source: Pinzón et al. (arXiv 2601.08603), theorem 1.
    """
    reports = count_reports(counts, mechanism.k)
    ascending = np.sort(counts)
    sums = np.cumsum(ascending)

    def kept_sum(zeros: int) -> int:
        return reports - (int(sums[zeros - 1]) if zeros else 0)

    def fits(zeros: int) -> bool:
        least, kept = int(ascending[zeros]), mechanism.k - zeros
        return mechanism.contrast * least + mechanism.q * (kept * least - kept_sum(zeros)) >= 0

    # `fits` is false below some t and true from there on, and true when only the largest count is kept.
    # Equal counts are kept or zeroed together: moving one count x to the zeros leaves m x - S unchanged.
    zeros = bisect_left(range(mechanism.k - 1), True, key=fits)
    frequency = counts.astype(np.float64)
    frequency *= mechanism.k - zeros
    frequency -= kept_sum(zeros)
    frequency *= mechanism.q / mechanism.contrast
    frequency += counts
    frequency /= kept_sum(zeros)
    return np.clip(frequency, 0, 1, out=frequency)


def std_error(frequency: FloatArray, reports: int, mechanism: SymmetricChannel) -> FloatArray:
    """Return the standard error of `inv`: sqrt((f p (1 - p) + (1 - f) q (1 - q)) / N) / (p - q).

    Parameters
    ----------
    frequency : float64 array (n,), f, estimated or true frequencies, clipped to [0, 1].
    reports : N, >= 1.
    mechanism : k-RR, longitudinal or not, of the reports.

    Returns
    -------
    float64 array (n,), fractions of all reports, > 0.
    """
    return Inversion.of_symmetric(mechanism).std_error(frequency, reports)


_CLOSED_FORMS: dict[str, Callable[[NDArray[np.int64], SymmetricChannel], FloatArray]] = {
    "mle": mle,
    "inv": inv,
    "inv-n": inv_n,
    "inv-p": inv_p,
}
