"""Intervals of shares, by default of 95 %, from counts of reports, whose variance depends on the share."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from estimators.arrays import FloatArray
from estimators.frequency.estimate import IntervalEnds
from estimators.frequency.intervals.acceptance import LEVEL, quantile_of, radius_of, region_of


@dataclass(frozen=True)
class ScoreTest:
    """The test of every share f in [0, 1] with the standard error of that share, not with an estimated one.

    An estimate x is standardized as x / s(f), where s(f)² = (1 - f) at_0 + f at_1, and compared with the
    region of Feldman and Cousins. Far from 0 and 1 this is the score test, |x - f| <= 1.96 s(f).

    Counts are integers and skewed, but the region is that of a normal. Each end is extended for that, by

    - half a count where 5 % of the normal are beyond it, as at 0 and 1. It falls to 0 with that tail's excess
      over 2.5 %, since rounding averages out over two tails; but not below the lesser of half a count and
      1 / v counts, where v is the variance of the count: small counts are far from normal.
    - the shift of the normal's quantile by skewness (Cornish and Fisher). It falls to 0 likewise, since
      skewness moves as much probability to one of two tails as from the other.

    It is for returning clients, whose counts are no sums of binomials. Of reports that each come from
    another client it covers 94 to 96 % where v >= 100, and 93.8 to 97.5 % where v >= 16, by summation. Below
    that, and at levels far above 95 %, the normal approximation fails: `TwoBinomials` does not.

    Parameters
    ----------
    at_0, at_1 : variance of the estimate if the true share is 0 or 1, > 0.
    step : change of the estimate by one count, > 0.
    skew_0, skew_1 : third over second cumulant of the count if the true share is 0 or 1, in (-1, 1).
    """

    at_0: float
    at_1: float
    step: float
    skew_0: float
    skew_1: float

    def std_error(self, share: FloatArray) -> FloatArray:
        """Return s(f), float64 (n,), > 0; shares outside [0, 1] have that of the nearest end."""
        inside = np.clip(share, 0, 1)
        return np.sqrt((1 - inside) * self.at_0 + inside * self.at_1)

    def interval(self, estimate: FloatArray, level: float = LEVEL) -> IntervalEnds:
        """Return the lowest and highest accepted share of every estimate.

        Parameters
        ----------
        estimate : float64 array (n,), unbiased, so it may be negative or above 1.
        level : probability of covering the true share, in [0.9, 1).

        Returns
        -------
        low and high, float64 arrays (n,), 0 <= low < high <= 1.

        Source: Feldman, Cousins, Phys. Rev. D 57 (1998), section IV B; Wilson, J. Am. Statist. Assoc. 22
        (1927); Abramowitz, Stegun (1972), 26.2.49.
        """
        distinct = np.unique(estimate)
        share = self._grid(quantile_of(level))
        error = self.std_error(share)
        scaled, most = share / error, 1 / error
        radius = radius_of(scaled, most, level)
        below, above = region_of(scaled, most, radius)
        more_below = self._extension(scaled - below, error, -self.skew_1, level)
        more_above = self._extension(above - scaled, error, self.skew_0, level)
        lower = np.array([below * error - more_below, radius, more_below])
        upper = np.array([1 - above * error - more_above, radius, more_above])  # in shares of all others
        high = _highest(distinct, lower[:, 1:], self.at_0, self.at_1)
        low = 1 - _highest(1 - distinct, upper[:, -2::-1], self.at_1, self.at_0)
        place = np.searchsorted(distinct, estimate)
        return IntervalEnds(low[place], high[place])

    def _grid(self, quantile: float) -> FloatArray:
        """Shares from 0 to 1, dense within the quantile of both, float64 (n,), ascending."""
        distance = np.linspace(0.02, quantile + 0.04, 100)
        from_0 = _share_at(distance, self.at_0, self.at_1)
        from_1 = 1 - _share_at(distance, self.at_1, self.at_0)
        return np.unique(np.clip(np.concatenate([np.linspace(0, 1, 33), from_0, from_1]), 0, 1))

    def _extension(self, distance: FloatArray, error: FloatArray, skew: float, level: float) -> FloatArray:
        """Return how far an end of the region is moved outwards, in shares; `skew` is positive outwards."""
        one_sided: FloatArray = np.clip(2 * ndtr(-distance) / (1 - level) - 1, 0, 1)
        rough = np.minimum((self.step / error) ** 2, 0.5)
        # The shift of the one-sided quantile z by a skewness, in units of third over second cumulant.
        shift = (float(ndtri(level)) ** 2 - 1) / 6
        return self.step * (np.maximum(one_sided / 2, rough) + one_sided * shift * skew)


def _share_at(distance: FloatArray, at_0: float, at_1: float) -> FloatArray:
    """Solve f = m s(f): the share that is m of its own standard errors away from 0."""
    half = distance**2 * (at_1 - at_0) / 2
    return half + np.sqrt(half**2 + distance**2 * at_0)


def _highest(estimate: FloatArray, edge: FloatArray, at_0: float, at_1: float) -> FloatArray:
    """Return the highest accepted share of each estimate.

    It solves x + c = f - r s(f), or, where that is negative, x + c = (f - r² s(f)² / f) / 2; both are
    quadratic in f. The radius r and the extension c change slowly along the edge and are interpolated.

    Parameters
    ----------
    estimate : float64 array (n,), x.
    edge : float64 array (3, m): lowest accepted estimate, r and c of shares up to 1, by ascending share.
    at_0, at_1 : variance of the estimate if the true share is 0 or 1.

    Returns
    -------
    float64 array (n,), in (0, 1].
    """
    lowest = np.minimum.accumulate(edge[0, ::-1])[::-1]
    radius, more = (np.interp(estimate, lowest, row) for row in edge[1:])
    center, slope = estimate + more, at_1 - at_0
    square = radius**2
    middle = center + square * slope / 2
    half = radius * np.sqrt(np.maximum(at_0 + slope * center + square * slope**2 / 4, 0))
    root = np.hypot(middle, radius * np.sqrt(at_0))
    falling = np.where(middle > 0, middle + root, square * at_0 / (root + np.abs(middle)))
    share = np.where(center >= 0, middle + half, falling)
    return np.where(estimate >= lowest[-1], 1, np.minimum(share, 1))
