"""The mean of the positive part of a sum: an integral along a line, by the trapezoidal rule, with its errors.

Source: the line through the saddle point: Daniels, "Saddlepoint approximations in statistics" (Annals of
Mathematical Statistics, 1954); in privacy accounting: Alghamdi et al., "The saddle-point method in
differential privacy" (ICML 2023), without these bounds.
"""

import math
from typing import NamedTuple

import numpy as np

from deniable.estimators.accounting.shuffling.steps import ComplexArray, Steps
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT

#: The sum is smoothed by SMOOTHINGS uniform variables of width w each, so that the integrand falls quickly.
SMOOTHINGS = 6
#: E[U_+] / w of their sum U, by the distribution of Irwin and Hall: (3^7 - 6 2^7 + 15) / 7!, rounded up.
ABOVE_0 = 1434 / 5040 * (1 + 2 * UNIT)


class Enclosure(NamedTuple):
    """A number that is known to be in [low, high]."""

    low: float
    high: float


class LineIntegral:
    """The trapezoidal rule on the line of real part `tilt`.

    With S' = S + U, U the smoothing variables, f(y) = exp(tilt y) E[(S' - y)_+] has the Fourier transform
    E[exp(z S')] / z^2 at z = tilt + i t. By Poisson's summation formula, points at distance 2 pi / period sum
    to f(0), which is wanted, plus f at all other multiples of the period, which are not negative.

    Parameters
    ----------
    steps : of the sum S.
    tilt : > 0.
    period : distance of the terms that the rule adds.
    width : w of each smoothing variable.
    points : number of points beside the one at `tilt`; the other half of the line is the conjugate.
    """

    def __init__(self, steps: Steps, tilt: float, period: float, width: float, points: int) -> None:
        self._steps, self._tilt, self._period, self._width = steps, tilt, period, width
        self._spacing = 2 * math.pi / period
        self._last = points * self._spacing
        t: FloatArray = self._spacing * np.arange(points + 1, dtype=np.float64)
        self._z = tilt + 1j * t
        self._log_scale = steps.log_moment(tilt)
        self._powers, self._errors = steps.powers(tilt, t, self._log_scale)
        argument: ComplexArray = self._z * width / 2
        base, base_error = np.abs(np.sinh(argument) / argument), _error_of_sinh(argument)
        self._kernel = (np.sinh(argument) / argument) ** SMOOTHINGS / self._z**2
        error = (
            SMOOTHINGS * base_error * (base + base_error) ** (SMOOTHINGS - 1) + 32 * UNIT * base**SMOOTHINGS
        )
        self._kernel_error = error / np.abs(self._z) ** 2

    def enclosure(self) -> tuple[Enclosure, bool]:
        """Enclose E[S_+], and say whether it is the period that makes the enclosure wide.

        E[S'_+] >= E[S_+] by Jensen. The excess is E[b(S)], b(s) = E[(s + U)_+] - s_+, which is largest at 0,
        where it is E[U_+], and 0 beyond |s| = 3 w. There h, of `_bump`, is at least 1/2, so b <= 2 b(0) h.
        What the case that all steps are 0 adds to E[b(S)] and to E[h(S)] is known, and taken apart.
        """
        scale, rounding = math.exp(self._log_scale), 16 * UNIT * (4 + abs(self._log_scale))
        smoothed, error = self._sum(self._kernel, self._kernel_error, 1.0)
        bump, bump_error = self._bump()
        at_zero, still = ABOVE_0 * self._width, self._steps.all_zero()
        bumps = max((bump + bump_error) * scale * (1 + rounding) - still * (1 - ABOVE_0 / 3), 0.0)
        excess = at_zero * (still + 2 * bumps)
        high = (smoothed + error) * scale * (1 + rounding) - still * at_zero * (1 - 8 * UNIT) + 1e-300
        others = self._other_terms(high + at_zero)
        low = (smoothed - error) * scale * (1 - rounding) - excess * (1 + 16 * UNIT) - others
        return Enclosure(max(low, 0.0), high), others > excess

    def _bump(self) -> tuple[float, float]:
        """Return E[h(S)] and its error, h the smoothed triangle of height 1 and half width c = 6 w.

        h(s) = (E[(s + c + U)_+] - 2 E[(s + U)_+] + E[(s - c + U)_+]) / c = E[(1 - |s + U| / c)_+]. Since
        |U| <= 3 w, it is concave for |s| <= 3 w, and at its ends 1 - 3 w / c = 1/2; at 0 it is 1 - E|U| / c.
        """
        half = 6 * self._width
        argument: ComplexArray = self._z * half / 2
        sines: ComplexArray = np.sinh(argument)
        factor = sines * sines * (4 / half)
        largest = 4 * math.cosh(self._tilt * half / 2) ** 2 / half
        # That of `_error_of_sinh` is relative to 1 / |argument|.
        own = largest * 4 * _error_of_sinh(argument) * np.abs(argument)
        error = np.abs(factor) * self._kernel_error + (np.abs(self._kernel) + self._kernel_error) * own
        return self._sum(self._kernel * factor, error, largest)

    def _sum(self, kernel: ComplexArray, kernel_error: FloatArray, largest: float) -> tuple[float, float]:
        """Return the rule's sum over exp(log_scale), and a bound on its error.

        Parameters
        ----------
        kernel : complex128 (points + 1,).
        kernel_error : float64 (points + 1,), bounds on its errors.
        largest : bound on the modulus of what the kernel has beside the smoothing and 1 / z^2.
        """
        terms, weight = (self._powers * kernel).real, self._spacing / math.pi
        total = weight * (float(terms[0]) / 2 + float(terms[1:].sum()))
        size, powers = np.abs(kernel), np.abs(self._powers)
        own = (powers + self._errors) @ (kernel_error + (32 + len(terms)) * UNIT * size)
        rounding = weight * float(own + self._errors @ size)
        # |sinh(a + i b)| <= cosh(a); a sum of a falling function is at most its integral from a point before.
        sides = 2 * math.cosh(self._tilt * self._width / 2) / (self._width * self._last)
        rest = largest * sides**SMOOTHINGS / ((SMOOTHINGS + 1) * self._last * math.pi)
        return total, (rounding + rest) * (1 + 64 * UNIT)

    def _other_terms(self, smoothed: float) -> float:
        """Bound f at all multiples of the period but 0, from a bound on E[S'_+].

        Before 0: E[(S' + y)_+] <= y + E[S'_+]. Behind 0: s_+ <= exp(a s - 1) / a for any a > 0, here up to
        three times the tilt; and 0 behind the largest sum.
        """
        steps, tilt, period = self._steps, self._tilt, self._period
        fallen = math.exp(-tilt * period)
        before = (period / (1 - fallen) + smoothed) * fallen / (1 - fallen)
        if period > (steps.number * steps.largest + SMOOTHINGS / 2 * self._width) * (1 + 64 * UNIT):
            return before * (1 + 64 * UNIT)
        best = math.inf
        for steep in (factor * tilt for factor in (1.1, 1.25, 1.5, 2.0, 3.0)):
            if steep * steps.largest > 600:
                continue
            smoothing = (math.sinh(steep * self._width / 2) / (steep * self._width / 2)) ** SMOOTHINGS
            decay = (steep - tilt) * period
            exponent = steps.log_moment_above(steep) - 1 - decay
            if exponent < 600:
                best = min(best, smoothing * math.exp(exponent) / steep / -math.expm1(-decay))
        return (before + best) * (1 + 1e-9)


def _error_of_sinh(argument: ComplexArray) -> FloatArray:
    """Bound the error of sinh(v) / v as computed from a v that is itself rounded: |cosh(v)| <= cosh(Re v)."""
    size = np.abs(argument)
    error: FloatArray = 32 * UNIT * np.cosh(argument.real) * (1 + size) / np.maximum(size, 1.0)
    return error
