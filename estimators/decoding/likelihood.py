"""The most likely frequencies behind RAPPOR bit counts, the bits taken as independent."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from estimators.arrays import FloatArray
from estimators.decoding.design import weighted_gram
from estimators.frequency.simplex import minimize_quadratic
from estimators.mechanisms.channels import BitChannel

GAP_TOLERANCE = 1e-12
_MAXIMUM_STEPS = 50
_RIDGE = 1e-12
_VALUE_ROUNDING = 1e-14


@dataclass(frozen=True)
class BitLikelihood:
    """Negative log-likelihood per report of lambda = p* + (q* - p*) X theta, X the design matrix.

    Parameters
    ----------
    design : csc_array (rows, n), share of a candidate's reports whose true bit is 1, in [0, 1].
    ones : float64 array (rows,), reports that show a 1.
    zeros : float64 array (rows,), reports of the same cohort that show a 0.
    reports : number of all reports (N).
    channel : BitChannel that made the reports.
    """

    design: csc_array
    ones: FloatArray
    zeros: FloatArray
    reports: int
    channel: BitChannel

    def value(self, theta: FloatArray) -> float:
        """Negative log-likelihood per report at theta, float64 (n,), >= 0, sum <= 1; nats."""
        rate = self._rate(theta)
        return float(-(self.ones @ np.log(rate) + self.zeros @ np.log1p(-rate)) / self.reports)

    def gradient(self, theta: FloatArray) -> FloatArray:
        """First derivative by theta, float64 (n,)."""
        rate = self._rate(theta)
        residual = self.zeros / (1 - rate) - self.ones / rate
        slope: FloatArray = self._contrast / self.reports * (self.design.T @ residual)
        return slope

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Second derivative by theta, float64 (n, n), positive semidefinite."""
        rate = self._rate(theta)
        curvature = self.ones / rate**2 + self.zeros / (1 - rate) ** 2
        return weighted_gram(self.design, self._contrast**2 / self.reports * curvature)

    @property
    def _contrast(self) -> float:
        return self.channel.q_star - self.channel.p_star

    def _rate(self, theta: FloatArray) -> FloatArray:
        """P(report 1) per row; in [p*, q*] since X theta is in [0, 1]."""
        rate: FloatArray = self.channel.p_star + self._contrast * (self.design @ theta)
        return rate


def maximize(likelihood: BitLikelihood, start: FloatArray) -> tuple[FloatArray, float]:
    """Find the maximum of the likelihood on {theta >= 0, sum theta <= 1} by Newton steps within the set.

    Convex, so a minimum of the negative is the global one, and its distance is known: by convexity no theta
    in the set is better by more than gradient'theta - min(0, smallest entry of the gradient), the gap.

    Parameters
    ----------
    likelihood : BitLikelihood of n columns.
    start : float64 array (n,), >= 0, sum <= 1; the nearer the maximum, the fewer steps.

    Returns
    -------
    theta, float64 (n,); the gap, nats per report, below 1e-12 unless rounding stops it before.

    Source: Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex optimization" (ICML 2013),
    equation 2, for the gap; for the steps as of `channel_mle`.
    """
    theta = start
    for _ in range(_MAXIMUM_STEPS):
        gradient = likelihood.gradient(theta)
        gap = max(0.0, float(gradient @ theta - min(0.0, gradient.min())))
        if gap <= GAP_TOLERANCE:
            break
        direction = _newton_direction(likelihood.hessian(theta), gradient, theta)
        length = _step_length(likelihood, theta, direction, float(gradient @ direction))
        if length == 0:
            break
        theta = theta + length * direction
    return theta, gap


def _newton_direction(hessian: FloatArray, gradient: FloatArray, theta: FloatArray) -> FloatArray:
    """Step to the minimum of the quadratic model on the set; what is missing to a sum of 1 is one more entry.

    A ridge of 1e-12 of the mean curvature decides between columns that are equal.
    """
    columns = len(theta)
    padded = np.zeros((columns + 1, columns + 1))
    padded[:columns, :columns] = hessian + _RIDGE * np.trace(hessian) / columns * np.eye(columns)
    linear = np.append(padded[:columns, :columns] @ theta - gradient, 0.0)
    start = np.append(theta, max(0.0, 1 - theta.sum()))
    return minimize_quadratic(padded, linear, start)[:columns] - theta


def _step_length(likelihood: BitLikelihood, theta: FloatArray, direction: FloatArray, slope: float) -> float:
    """Halve a step of 1 until the value falls by a ten-thousandth of what the slope promises (Armijo).

    A rise within the rounding of the value is no rise: the last steps gain less than a value can show.
    """
    value, length = likelihood.value(theta), 1.0
    ceiling = value + _VALUE_ROUNDING * abs(value)
    while length > 1e-12:
        if likelihood.value(theta + length * direction) <= ceiling + 1e-4 * length * slope:
            return length
        length /= 2
    return 0.0
