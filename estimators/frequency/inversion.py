"""Linear inversion of one bucket's share of reports, with its standard error and its interval."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from estimators.arrays import FloatArray
from estimators.frequency.estimate import QUANTILE_975
from estimators.mechanisms.channels import BitChannel, SymmetricChannel


@dataclass(frozen=True)
class Inversion:
    """How a bucket is reported: with probability `hit` by those who are in it, `miss` by the others.

    Parameters
    ----------
    hit : p of k-RR, q* of a RAPPOR bit; in (miss, 1).
    miss : q of k-RR, p* of a RAPPOR bit; in (0, hit).
    contrast : hit - miss, > 0; given apart, since the two floats may be equal.
    """

    hit: float
    miss: float
    contrast: float

    @classmethod
    def of_symmetric(cls, mechanism: SymmetricChannel) -> Self:
        """Take one value of k-RR, permanent step or not: hit p, miss q."""
        return cls(mechanism.p, mechanism.q, mechanism.contrast)

    @classmethod
    def of_bit(cls, mechanism: BitChannel) -> Self:
        """Take one bit of RAPPOR: hit q*, miss p*."""
        return cls(mechanism.q_star, mechanism.p_star, mechanism.q_star - mechanism.p_star)

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
        """Return the error of `frequency`, the true values being fixed and only the noise random.

        sqrt((f hit (1 - hit) + (1 - f) miss (1 - miss)) / N) / contrast, with f clipped to [0, 1].

        Parameters
        ----------
        frequency : float64 array (n,), estimated or true frequencies.
        reports : N, >= 1; one for all, or an array that broadcasts with `frequency`.

        Returns
        -------
        float64 array (n,), fractions of all reports, > 0.
        """
        base, slope = self._variance()
        return np.sqrt((base + slope * np.clip(frequency, 0, 1)) / reports)

    def score_interval(
        self, inverted: FloatArray, reports: FloatArray | int
    ) -> tuple[FloatArray, FloatArray]:
        """Compute the 95 % interval of all f not rejected by the estimate: |x - f| <= z standard errors at f.

        The variance (a + b f) / N is linear in f, so the ends are, with a and b divided by N,
        x + z² b/2 ± z sqrt(a + b x + z² b²/4); a + b x >= 0 for every share of reports in [0, 1].

        Coverage, exact, after clipping to [0, 1], on k-RR with N 1e4 to 1e6, epsilon 1 to 4, k 10 to 1000,
        Zipf .01 to 2.5 (`make bench-estimators`): 94.8 to 97.4 % on average over the values, 93.8 % at least
        for any one. Values that nobody holds are covered with 97.5 %, since they can be missed on one side
        only. Coverage falls below 93 % where lies are rare: of the worst value to 92.8 % at N miss = 2, to
        91.6 % at 1, 89.5 % at 0.5 and 84 % at 0.1.

        Parameters
        ----------
        inverted : float64 array (n,), x, from `frequency`.
        reports : N, >= 1; one for all, or an array that broadcasts with `inverted`.

        Returns
        -------
        low and high, float64 arrays (n,), not clipped.

        Source: Wilson, J. Am. Statist. Assoc. 22 (1927), for the variance of the sum of two binomials.
        """
        base, slope = (term / reports for term in self._variance())
        shift = QUANTILE_975**2 * slope / 2
        half = QUANTILE_975 * np.sqrt(base + slope * inverted + shift * slope / 2)
        return inverted + shift - half, inverted + shift + half

    def _variance(self) -> tuple[float, float]:
        """Return a and b of the variance (a + b f) / N of `frequency`."""
        # hit (1 - hit) - miss (1 - miss) = (hit - miss)(1 - hit - miss)
        return self.miss * (1 - self.miss) / self.contrast**2, (1 - self.hit - self.miss) / self.contrast
