"""Linear inversion f = (share - q) / (p - q) of one bucket, with its standard error and interval."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.acceptance import LEVEL
from deniable.estimators.frequency.intervals.two_binomials import TwoBinomials
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.traits import BitChannel, SymmetricChannel, ValueBits


@dataclass(frozen=True)
class Inversion:
    """The channel of one bucket: clients in it report it with probability `hit`, all others with `miss`.

    Parameters
    ----------
    hit : p of k-RR, q* of a RAPPOR bit; in (miss, 1).
    miss : q of k-RR, p* of a RAPPOR bit; in (0, hit).
    contrast : hit - miss, > 0; a separate field, because the two floats may be equal.
    """

    hit: float
    miss: float
    contrast: float

    @classmethod
    def of_symmetric(cls, mechanism: SymmetricChannel) -> Self:
        """Channel of one value of k-RR, longitudinal or not: hit p, miss q."""
        return cls(mechanism.p, mechanism.q, mechanism.contrast)

    @classmethod
    def of_bit(cls, mechanism: BitChannel) -> Self:
        """Channel of one bit of RAPPOR: hit q*, miss p*."""
        return cls(mechanism.q_star, mechanism.p_star, mechanism.q_star - mechanism.p_star)

    @classmethod
    def of_support(cls, mechanism: FunctionPool) -> Self:
        """Channel of the support of one value by local hashing: hit p of its response, miss 1/g."""
        return cls(mechanism.hit, mechanism.miss, mechanism.contrast)

    @classmethod
    def of_mechanism(cls, mechanism: KRR | LongitudinalKRR | ValueBits | FunctionPool) -> Self:
        """Channel of one value of a mechanism whose values are each estimated by themselves."""
        match mechanism:
            case FunctionPool():
                return cls.of_support(mechanism)
            case ValueBits():
                return cls.of_bit(mechanism)
            case _:
                return cls.of_symmetric(mechanism)

    def frequency(self, share: FloatArray) -> FloatArray:
        """Invert x = (share - miss) / contrast: unbiased, so it may be negative or above 1.

        Parameters
        ----------
        share : float64 array (n,), reports of the bucket over all reports, in [0, 1].

        Returns
        -------
        float64 array (n,), fractions of all reports.
        """
        return (share - self.miss) / self.contrast

    def std_error(self, frequency: FloatArray, reports: FloatArray | int) -> FloatArray:
        """Return the standard error of `frequency` for fixed true values, over the noise alone.

        sqrt(((1 - f) miss (1 - miss) + f hit (1 - hit)) / N) / contrast, with f clipped to [0, 1].

        Parameters
        ----------
        frequency : float64 array (n,), estimated or true frequencies.
        reports : N, >= 1; a scalar, or an array that broadcasts with `frequency`.

        Returns
        -------
        float64 array (n,), fractions of all reports, > 0.
        """
        inside = np.clip(frequency, 0, 1)
        variance = (1 - inside) * self.miss * (1 - self.miss) + inside * self.hit * (1 - self.hit)
        return np.sqrt(variance / reports) / self.contrast

    @property
    def slope(self) -> float:
        """By how much N times the squared standard error is larger at a frequency of 1 than at 0."""
        return (self.hit * (1 - self.hit) - self.miss * (1 - self.miss)) / self.contrast**2

    def score_interval(self, inverted: FloatArray, reports: int, level: float = LEVEL) -> IntervalEnds:
        """Return the interval of every share: all f in [0, 1] whose test accepts x, see `TwoBinomials`.

        Parameters
        ----------
        inverted : float64 array (n,), x, from `frequency`.
        reports : N, >= 1.
        level : probability of covering the true share, in [0.9, 1).

        Returns
        -------
        low and high, float64 arrays (n,), fractions, 0 <= low < high <= 1.
        """
        counts = reports * (self.miss + self.contrast * inverted)
        return TwoBinomials(reports, self.hit, self.miss, self.contrast).interval(counts, level)
