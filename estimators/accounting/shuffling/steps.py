"""A sum of many independent steps, by its moment generating function."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT

ComplexArray = NDArray[np.complexfloating]

#: Largest relative error of the figures of a step, and of each result of a function of them.
FIGURE = 64 * UNIT


@dataclass(frozen=True, eq=False)
class Steps:
    """A sum S of n independent steps X, each of a few sizes, else of 0.

    Parameters
    ----------
    sizes : float64 array (m,), correct to a relative FIGURE.
    mass : float64 array (m,), probability of each size, > 0, together at most 1; also correct to FIGURE.
    number : n, in [1, 10^12].
    """

    sizes: FloatArray
    mass: FloatArray
    number: int

    @property
    def largest(self) -> float:
        """Largest size of one step."""
        return float(self.sizes.max())

    def all_zero(self) -> float:
        """Return a lower bound on the probability that all steps are 0."""
        some = float(self.mass.sum())
        if some >= 1 - 64 * UNIT:
            return 0.0
        error = self.number * some / (1 - some) * 4 * FIGURE
        return math.exp(self.number * math.log1p(-some) * (1 + 16 * UNIT) - error) * (1 - 16 * UNIT)

    def log_moment(self, tilt: float) -> float:
        """Return about n ln E[exp(tilt X)] of a real tilt, with tilt times the largest size at most 700."""
        return self.number * math.log1p(float(self.mass @ np.expm1(tilt * self.sizes)))

    def log_moment_above(self, tilt: float) -> float:
        """Return an upper bound on it."""
        grown = np.expm1(tilt * self.sizes)
        moment = 1 + float(self.mass @ grown)
        weights = self.mass * np.maximum((grown + 1) * tilt * self.sizes, -grown)
        error = (8 + len(weights) / 16) * FIGURE * float(weights.sum()) / moment
        return self.number * (math.log1p(moment - 1) + 4 * UNIT + error) * (1 + 8 * UNIT)

    def slope(self, tilt: float) -> float:
        """Return the mean of the tilted sum: the derivative of `log_moment`."""
        weights = self.mass * np.exp(tilt * self.sizes)
        return self.number * float(weights @ self.sizes) / self._moment(tilt)

    def variance(self, tilt: float) -> float:
        """Return the variance of the tilted sum."""
        weights = self.mass * np.exp(tilt * self.sizes)
        second = float(weights @ self.sizes**2) / self._moment(tilt)
        return self.number * second - self.slope(tilt) ** 2 / self.number

    def powers(self, tilt: float, t: FloatArray, log_scale: float) -> tuple[ComplexArray, FloatArray]:
        """Return E[exp(z S)] exp(-log_scale) at z = tilt + i t, and bounds on its errors.

        E[exp(z X)] - 1 is summed from terms exp(a) - 1 - 2 exp(a) sin(b / 2)^2 + i exp(a) sin b, a = tilt x,
        b = t x. They keep their accuracy near z = 0: a relative error of x, of t or of the result of a
        function by FIGURE changes a term by at most FIGURE times exp(a) (|a| + |b|), plus 1 - exp(a) if
        a < 0, and there are fewer than 8 of them. Powers n of two numbers of modulus at most m that differ by
        d differ by at most n d m^(n - 1).

        Parameters
        ----------
        tilt : > 0, times the largest size at most 700.
        t : float64 array (N,), >= 0.
        log_scale : about `log_moment(tilt)`.

        Returns
        -------
        complex128 (N,) and float64 (N,).
        """
        real, imaginary, error = np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)
        for size, mass in zip(self.sizes.tolist(), self.mass.tolist(), strict=True):
            grown, whole = math.expm1(tilt * size), math.exp(tilt * size)
            real += mass * (grown - 2 * whole * np.sin(t * size / 2) ** 2)
            imaginary += mass * whole * np.sin(t * size)
            error += mass * (max(whole * tilt * size, -grown) + whole * t * abs(size))
        error = error * (8 + len(self.mass) / 16) * FIGURE + FIGURE * (np.abs(real) + np.abs(imaginary))
        modulus = np.hypot(1 + real, imaginary)
        near_1 = np.abs(real) + np.abs(imaginary) < 0.5  # there ln of the modulus would lose its digits
        square = np.where(near_1, 2 * real + real**2 + imaginary**2, 0)
        log_modulus = np.where(near_1, 0.5 * np.log1p(square), np.log(np.where(near_1, 1, modulus) + 1e-300))
        exponent = self.number * log_modulus - log_scale
        angle = self.number * np.arctan2(imaginary, 1 + real)
        size_of = np.exp(np.minimum(exponent, 50.0))
        near = (self.number - 1) * np.log(modulus + error) - log_scale
        own = 32 * UNIT * (1 + np.abs(exponent) + np.abs(angle) + abs(log_scale)) * size_of
        errors = self.number * error * np.exp(np.minimum(near, 50.0)) * 1.01 + own
        return size_of * (np.cos(angle) + 1j * np.sin(angle)), errors

    def _moment(self, tilt: float) -> float:
        return 1 + float(self.mass @ np.expm1(tilt * self.sizes))
