"""The result of every estimator: frequencies with standard errors, 95 % intervals and significance."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray


def count_reports(counts: NDArray[np.int64], width: int) -> int:
    """Validate counts and return their sum (N).

    Parameters
    ----------
    counts : int64 array (width,), reports per reported value.
    width : number of possible reported values.

    Returns
    -------
    N, >= 1.

    Raises
    ------
    ValueError if counts is not of shape (width,), negative or all 0.
    """
    if counts.shape != (width,):
        raise ValueError(f"counts must have shape ({width},), got {counts.shape}")
    if counts.min() < 0:
        raise ValueError(f"counts must not be negative, got {counts.min()}")
    reports = int(counts.sum())
    if reports == 0:
        raise ValueError("counts must hold at least 1 report, got 0")
    return reports


# Normal quantile of 0.975: half the width of a 95 % interval, in standard errors.
QUANTILE_975 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated frequencies of n values among the counted reports.

    The true values are taken as fixed: errors and intervals reflect only the noise of the randomization.

    Parameters
    ----------
    estimator : name of the point estimate.
    reports : number of counted reports (N), >= 1.
    frequency : float64 array (n,), point estimate, fractions of all reports.
    std_error : float64 array (n,), standard error of the unconstrained estimate, fractions, > 0; inf where
        the value cannot be identified from the counts.
    low, high : float64 arrays (n,), 95 % interval from the unconstrained estimate, within [0, 1] where
        `frequency` is, and holding `frequency`.
    significant : bool array (n,), frequency > 0 after Benjamini-Hochberg at 5 %, one-sided.
    other : frequency and standard error of all strings that are no candidates; only for Bloom RAPPOR with a
        background.
    diagnostics : diagnostics of the numerical solution, by name.
    """

    estimator: str
    reports: int
    frequency: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    significant: NDArray[np.bool_]
    other: tuple[float, float] | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)

    @property
    def count(self) -> FloatArray:
        """Estimated number of reports with each true value, float64 (n,): frequency times reports."""
        return self.frequency * self.reports


def shown_interval(low: FloatArray, high: FloatArray, frequency: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Clip an interval of the unconstrained estimate to [0, 1], then widen it to contain the point estimate.

    Neither step reduces coverage, since the true frequency is in [0, 1].

    Parameters
    ----------
    low, high : float64 arrays (n,), any reals, low <= high.
    frequency : float64 array (n,), the point estimate.

    Returns
    -------
    The new low and high, float64 arrays (n,), fractions.
    """
    return np.minimum(np.clip(low, 0, 1), frequency), np.maximum(np.clip(high, 0, 1), frequency)
