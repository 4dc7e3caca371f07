"""How far a sum of independent bounded errors may be, where too few reports are counted for a normal.

Let S be the sum, V its variance, and b the most that one report adds. Bennett's inequality is
P(S >= t) <= exp(-(V / b²) h(b t / V)), h(u) = (1 + u) ln(1 + u) - u. Its exponent is taken as half the square
of a normal, as Zubkov and Serov prove it for binomials, and half a step is added, as counts are integers.
For large V / b² that is the normal itself; for small V, where single reports decide, a bound.
"""

import numpy as np

from deniable.estimators.arrays import FloatArray

_NEWTON_STEPS = 12
# Smaller variances, in squared steps, are taken for this: less than one of 1e30 reports is expected.
_LEAST_VARIANCE = 1e-30


def reach_beyond_normal(variance: FloatArray, step: FloatArray, quantile: float) -> FloatArray:
    """Return by how much the quantile of S exceeds that of a normal, z sqrt(V).

    Parameters
    ----------
    variance : float64 array (n,), V, > 0.
    step : float64 array (n,), b, > 0, in the units of S.
    quantile : z, of a normal, > 0.

    Returns
    -------
    float64 array (n,), > 0, in the units of S: about b (1/2 + z² / 6) where V is many b².

    Source: Bennett, J. Am. Statist. Assoc. 57 (1962); Zubkov, Serov, Theory of Probability and its
    Applications 57 (2013), theorem 1.
    """
    steps = np.maximum(variance / step**2, _LEAST_VARIANCE)
    needed = quantile**2 / (2 * steps)
    # Bernstein's bound is above the solution and h is convex, so each of Newton's steps stays above it.
    found = needed / 3 + np.sqrt(needed**2 / 9 + 2 * needed)
    for _ in range(_NEWTON_STEPS):
        found = found - (_exponent(found) - needed) / np.log1p(found)
    reach: FloatArray = step * (found * steps - quantile * np.sqrt(steps) + 0.5)
    return np.maximum(reach, step / 2)


def normal_equivalent(errors: FloatArray, variance: FloatArray, step: FloatArray) -> FloatArray:
    """Return the z of a normal that exceeds it as rarely as S exceeds these errors.

    Parameters
    ----------
    errors : float64 array (n,), values of S.
    variance : float64 array (n,), V, > 0.
    step : float64 array (n,), b, > 0, in the units of S.

    Returns
    -------
    float64 array (n,), at most the errors over sqrt(V); not above 0 where they are below half a step.
    """
    steps = np.maximum(variance / step**2, _LEAST_VARIANCE)
    counted = errors / step - 0.5
    above = np.maximum(counted, 0)
    return np.where(counted > 0, np.sqrt(2 * steps * _exponent(above / steps)), counted / np.sqrt(steps))


def _exponent(turned: FloatArray) -> FloatArray:
    """h(u) = (1 + u) ln(1 + u) - u; u² / 2 - u³ / 6 for small u, where the difference cancels."""
    exact = (1 + turned) * np.log1p(turned) - turned
    found: FloatArray = np.where(turned < 1e-5, turned**2 * (0.5 - turned / 6), exact)
    return found
