"""Tails of sums of binomials at their saddlepoint s, where the tilted mean K'(s) is the count.

K is the sum of the logarithms of moment generating functions: of trials that each count with a probability,
and of a compensated Poisson count, which has the same variance as other errors of mean 0. P(X >= x) is about
P(Z >= w + ln(u / w) / w) for a normal Z, where w is the signed root of the log-likelihood ratio of the tilted
distribution, and u = 2 sinh(s / 2) sqrt(K''(s)) of a lattice.

Source: Daniels, "Tail probability approximations" (Int. Statist. Rev. 55, 1987), section 6, the second
correction for continuity; Barndorff-Nielsen, Biometrika 73 (1986), for r*.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import exprel

from deniable.estimators.arrays import FloatArray

_SMALLEST = 1e-300


class Tilted(NamedTuple):
    """Mean K'(s) and variance K''(s) of one trial, or of a spread of variance 1, float64 (n,)."""

    mean: FloatArray
    variance: FloatArray


class Roots(NamedTuple):
    """Signed root w, and u of the tail's correction, float64 (n,), of the sign of s."""

    w: FloatArray
    u: FloatArray

    @property
    def deviate(self) -> FloatArray:
        """The normal deviate r* = w + ln(u / w) / w whose tail is P(X >= x), float64 (n,); s is not 0."""
        return self.w + np.log(self.u / self.w) / self.w


def tilted_trial(s: FloatArray, probability: FloatArray | float) -> Tilted:
    """Return p e^s / (1 - p + p e^s) and its variance, to full precision near 0 and 1.

    Parameters
    ----------
    s : float64 array (n,), saddlepoints, in [-700, 700].
    probability : p, in (0, 1); one, or float64 array (n,).
    """
    miss = (1 - probability) * np.exp(-s)
    total = probability + miss
    mean = probability / total
    return Tilted(mean, mean * miss / total)


def log_of_trial(s: FloatArray, probability: FloatArray | float) -> FloatArray:
    """Return K(s) of one trial, ln(1 + p (e^s - 1)); parameters as of `tilted_trial`."""
    found: FloatArray = np.log1p(probability * np.expm1(s))
    return found


def tilted_spread(s: FloatArray, jump: float) -> Tilted:
    """Return mean and variance of a compensated Poisson count of jumps, per variance.

    Parameters
    ----------
    s : float64 array (n,), saddlepoints.
    jump : b, > 0.
    """
    return Tilted(s * exprel(jump * s), np.exp(jump * s))


def log_of_spread(s: FloatArray, jump: float) -> FloatArray:
    """Return K(s) of `tilted_spread`, (e^bs - 1 - bs) / b²; s > 0."""
    scaled = jump * s
    order = np.where(scaled < 1e-3, 0.5 + scaled / 6, (exprel(scaled) - 1) / np.maximum(scaled, 1e-3))
    found: FloatArray = s**2 * order
    return found


def roots(s: FloatArray, exponent: FloatArray, variance: FloatArray, least: float = _SMALLEST) -> Roots:
    """Return w and u at saddlepoints.

    Parameters
    ----------
    s : float64 array (n,), saddlepoints.
    exponent : float64 array (n,), s x - K(s).
    variance : float64 array (n,), K''(s).
    least : what rounding leaves at least of both, and of w squared, > 0.
    """
    w = np.sign(s) * np.sqrt(np.maximum(2 * exponent, least))
    u: FloatArray = 2 * np.sinh(s / 2) * np.sqrt(np.maximum(variance, least))
    return Roots(w, u)
