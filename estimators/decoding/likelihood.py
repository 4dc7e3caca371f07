"""Maximum likelihood frequencies from RAPPOR bit counts, with bits treated as independent."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array

from deniable.estimators.arrays import FloatArray
from deniable.estimators.decoding.design import weighted_gram
from deniable.estimators.frequency.simplex import minimize_quadratic
from deniable.estimators.mechanisms.traits import BitChannel

GAP_TOLERANCE = 1e-12
_MAXIMUM_STEPS = 50
_RIDGE = 1e-12
_VALUE_ROUNDING = 1e-14


@dataclass(frozen=True)
class BitLikelihood:
    """Negative log-likelihood per report of P(report 1) = lambda = p* + (q* - p*) X theta.

    Parameters
    ----------
    design : csc_array (rows, n), X, share of a candidate's reports whose true bit is 1, in [0, 1].
    ones : float64 array (rows,), reports that show a 1.
    zeros : float64 array (rows,), reports of the same cohort that show a 0.
    reports : number of all reports (N).
    channel : BitChannel of the reports.
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
        """Gradient with respect to theta, float64 (n,)."""
        rate = self._rate(theta)
        residual = self.zeros / (1 - rate) - self.ones / rate
        slope: FloatArray = self._contrast / self.reports * (self.design.T @ residual)
        return slope

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Hessian with respect to theta, float64 (n, n), positive semidefinite."""
        rate = self._rate(theta)
        curvature = self.ones / rate**2 + self.zeros / (1 - rate) ** 2
        return weighted_gram(self.design, self._contrast**2 / self.reports * curvature)

    @property
    def _contrast(self) -> float:
        return self.channel.q_star - self.channel.p_star

    def _rate(self, theta: FloatArray) -> FloatArray:
        """P(report 1) per row; in [p*, q*] because X theta is in [0, 1]."""
        rate: FloatArray = self.channel.p_star + self._contrast * (self.design @ theta)
        return rate


def maximize(likelihood: BitLikelihood, start: FloatArray) -> tuple[FloatArray, float]:
    """Maximize the likelihood on {theta >= 0, sum theta <= 1} by Newton steps within the set.

    The negative log-likelihood is convex, so no theta in the set improves on the current one by more than
    the duality gap, gradient'theta - min(0, smallest entry of the gradient).

    Parameters
    ----------
    likelihood : BitLikelihood of n columns.
    start : float64 array (n,), >= 0, sum <= 1; the nearer the maximum, the fewer steps.

    Returns
    -------
    theta, float64 (n,); the gap, nats per report, below 1e-12 unless rounding ends the iteration earlier.

    Source: Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex optimization" (ICML 2013),
    equation 2, for the gap; Kim et al., "A fast algorithm for maximum likelihood estimation of mixture
    proportions using sequential quadratic programming" (J. Comput. Graph. Statist. 29, 2020), for the steps.
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
    """Return the step to the minimum of the quadratic model on the set; 1 - sum theta is a slack entry.

    A ridge of 1e-12 of the mean curvature makes the minimum unique for equal columns.
    """
    columns = len(theta)
    padded = np.zeros((columns + 1, columns + 1))
    padded[:columns, :columns] = hessian + _RIDGE * np.trace(hessian) / columns * np.eye(columns)
    linear = np.append(padded[:columns, :columns] @ theta - gradient, 0.0)
    start = np.append(theta, max(0.0, 1 - theta.sum()))
    return minimize_quadratic(padded, linear, start)[:columns] - theta


def _step_length(likelihood: BitLikelihood, theta: FloatArray, direction: FloatArray, slope: float) -> float:
    """Halve a step of 1 until Armijo's condition holds with constant 1e-4; return 0 if it never does.

    A rise within the rounding of the value is accepted, because the last steps gain less than that.
    """
    value, length = likelihood.value(theta), 1.0
    ceiling = value + _VALUE_ROUNDING * abs(value)
    while length > 1e-12:
        if likelihood.value(theta + length * direction) <= ceiling + 1e-4 * length * slope:
            return length
        length /= 2
    return 0.0
