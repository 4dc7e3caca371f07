"""The most likely distribution behind k-RR counts, found independently of MLE*, and the shortfall of others.

The log-likelihood per report of theta is L = sum over y of phi_y log(q + c theta_y), with shares of reports
phi and c = p - q. It is concave, so at any theta no distribution exceeds

    L(theta) + max g - g'theta,    g_v = phi_v c / (q + c theta_v), the gradient:

the added term bounds the shortfall of theta from the maximum, however theta was found. All computations use
the longest floats of the machine.

Source: Jaggi, "Revisiting Frank-Wolfe: projection-free sparse convex optimization" (ICML 2013), equation 2.
"""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.traits import SymmetricChannel

_HALVINGS = 200

Counts = NDArray[np.int64]
Long = NDArray[np.longdouble]


def optimum(counts: Counts, mechanism: SymmetricChannel) -> FloatArray:
    """Fill theta_v = max(0, phi_v / nu - q / c) up to a sum of 1, nu by bisection: where max g is attained.

    The gradient is nu wherever theta is above 0, and at most nu where it is 0 (Karush-Kuhn-Tucker).

    Parameters
    ----------
    counts : int64 array (k,), reports per value.
    mechanism : k-RR that made the reports.

    Returns
    -------
    float64 array (k,), >= 0, summing to 1 within rounding.
    """
    shares = _shares(counts)
    floor = np.longdouble(mechanism.q) / np.longdouble(mechanism.contrast)
    # With no entry below 0 the sum is 1 / nu - k q / c, and never less than that.
    low, high = 1 / (1 + mechanism.k * floor), shares.max() / floor
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if np.maximum(shares / middle - floor, 0).sum() > 1:
            low = middle
        else:
            high = middle
    theta: FloatArray = np.maximum(shares / high - floor, 0).astype(np.float64)
    return theta


def bound(theta: FloatArray, counts: Counts, mechanism: SymmetricChannel) -> float:
    """Upper bound on the shortfall of theta from the maximum, nats per report, >= 0: max g - g'theta.

    Parameters
    ----------
    theta : float64 array (k,), a distribution.
    counts, mechanism : as of `optimum`.
    """
    gradient = _shares(counts) * np.longdouble(mechanism.contrast) / _rates(theta, mechanism)
    return max(0.0, float(gradient.max() - gradient @ theta.astype(np.longdouble)))  # rounding


def shortfall(theta: FloatArray, best: FloatArray, counts: Counts, mechanism: SymmetricChannel) -> float:
    """Upper bound on the shortfall of theta, nats per report, >= 0; includes `bound` of best.

    Parameters
    ----------
    theta, best : float64 arrays (k,), distributions.
    counts, mechanism : as of `optimum`.
    """
    theirs = _rates(theta, mechanism)
    ahead = _shares(counts) @ np.log1p((_rates(best, mechanism) - theirs) / theirs)
    return max(0.0, float(ahead) + bound(best, counts, mechanism))  # rounding


def distance(one: FloatArray, other: FloatArray) -> float:
    """L1 distance of two distributions, in [0, 2]."""
    return float(np.abs(one - other).sum())


def _shares(counts: Counts) -> Long:
    shares: Long = counts.astype(np.longdouble) / np.longdouble(counts.sum())
    return shares


def _rates(theta: FloatArray, mechanism: SymmetricChannel) -> Long:
    """P(report v) for each value v."""
    rates: Long = np.longdouble(mechanism.q) + np.longdouble(mechanism.contrast) * theta.astype(np.longdouble)
    return rates
