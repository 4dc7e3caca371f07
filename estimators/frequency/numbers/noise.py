"""Noise of sums over the reports of a number, and intervals of what they estimate."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.acceptance import quantile_of
from deniable.estimators.frequency.intervals.bounded_steps import normal_equivalent, reach_beyond_normal
from deniable.estimators.frequency.intervals.unified import unified_interval
from deniable.estimators.frequency.numbers.smoothed_em import onto_truth, report_rates
from deniable.estimators.mechanisms.square_wave import SquareWave

_LEAST_ERROR = 1e-12


def noise_of(rows: FloatArray, theta: FloatArray, reports: int, mechanism: SquareWave) -> FloatArray:
    """Return the standard error of the sums rows phi, for fixed true numbers.

    A report y of true cell x adds rows_y; its variance given x is E(rows_y^2 | x) - E(rows_y | x)^2.

    Parameters
    ----------
    rows : float64 array (m, d + 2b).
    theta : float64 array (d,), shares of the true numbers.
    reports : N, >= 1.
    mechanism : SquareWave of the reports.

    Returns
    -------
    float64 array (m,), > 0.
    """
    squares = rows**2 @ report_rates(theta, mechanism) - onto_truth(rows, mechanism) ** 2 @ theta
    return np.sqrt(np.maximum(squares / reports, _LEAST_ERROR**2))


@dataclass(frozen=True, eq=False)
class NumberNoise:
    """The noise of sums over reports, and intervals that hold also where few reports decide a sum.

    Parameters
    ----------
    std_error : float64 array (m,), > 0.
    up, down : float64 array (m,), > 0, the most that one report is above and below its mean.
    """

    std_error: FloatArray
    up: FloatArray
    down: FloatArray

    @classmethod
    def of(cls, rows: FloatArray, theta: FloatArray, reports: int, mechanism: SquareWave) -> Self:
        """Return that of the sums rows phi.

        Parameters
        ----------
        rows : float64 array (m, d + 2b).
        theta : float64 array (d,), shares of the true numbers.
        reports : N, >= 1.
        mechanism : SquareWave of the reports.
        """
        expected = onto_truth(rows, mechanism)
        up = rows.max(axis=1) - expected.min(axis=1)
        down = expected.max(axis=1) - rows.min(axis=1)
        least = np.maximum(up + down, _LEAST_ERROR) * _LEAST_ERROR
        error = noise_of(rows, theta, reports, mechanism)
        return cls(error, np.maximum(up, least) / reports, np.maximum(down, least) / reports)

    def beyond_normal(self, quantile: float) -> tuple[FloatArray, FloatArray]:
        """Return what is added below and above a normal interval: errors upwards extend it downwards."""
        variance = self.std_error**2
        return reach_beyond_normal(variance, self.up, quantile), reach_beyond_normal(
            variance, self.down, quantile
        )

    def interval(self, means: FloatArray, level: float) -> IntervalEnds:
        """Return the interval of each mean at this level."""
        low, high = unified_interval(means, self.std_error, level=level)
        below, above = self.beyond_normal(quantile_of(level))
        return IntervalEnds(low - below, high + above)

    def excess(self, means: FloatArray) -> FloatArray:
        """Return by how many standard errors of a normal the means are above 0."""
        return normal_equivalent(means, self.std_error**2, self.up)
