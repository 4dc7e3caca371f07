"""Intervals of shares from the count of a bucket that holders report with one probability, all others with
another: the sum of two binomials, by saddlepoint tails that hold for every count, from 0 up.
"""

from dataclasses import dataclass

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.acceptance import LEVEL, radius_of, region_of
from deniable.estimators.frequency.intervals.saddlepoint import log_of_trial, roots, tilted_trial

# Holders of which the region is computed; between them its ends are interpolated.
_FIRST_HOLDERS = 16
_RATIO = 1.1
_LEAST_DISTANCE = 0.02
# Largest saddlepoint: counts are then nearer than e^-60 to 0 or N.
_FARTHEST = 60.0
# Normal quantiles beyond this one have a probability of 0 in floats.
_LARGEST_QUANTILE = 37.0
# Of quantiles, and of saddlepoints.
_TOLERANCE = 1e-7
_MOST_STEPS = 60
_SMALLEST = 1e-300


@dataclass(frozen=True)
class TwoBinomials:
    """The count of a bucket with m holders among N clients: Binomial(m, p) + Binomial(N - m, q).

    Both tails of the count are those of `saddlepoint`. Against exact sums, N from 1 to 1e6, any m, expected
    false reports from 1e-6 up: tails between 1e-7 and 0.05 are off by at most 4 % of themselves.

    A number of holders is rejected if the count's lower tail is below that of the region of Feldman and
    Cousins, or its upper tail is. Both together have 1 - level, so every m is covered with the level or more:
    at least 94.9 % by exact summation at 95 %, on average 95.5 % where the variance v of the count is 100,
    96.5 % at 16, up to 100 % where hardly any report is false. Ends are half a count further than those of a
    normal, which averages over the counts; where v is 100 that is 2.5 % of the length.

    Parameters
    ----------
    reports : N, >= 1.
    hit : p, in (miss, 1).
    miss : q, in (0, hit).
    contrast : p - q, > 0; a separate field, because the two floats may be equal.

    Source: Feldman, Cousins, Phys. Rev. D 57 (1998), section IV B.
    """

    reports: int
    hit: float
    miss: float
    contrast: float

    def interval(self, counts: FloatArray, level: float = LEVEL) -> IntervalEnds:
        """Return the lowest and highest accepted share of every count.

        Parameters
        ----------
        counts : int64 or float64 array (n,), reports of the bucket, in [0, N]; any reals where they were
            corrected.
        level : probability of covering the true share, in [0.9, 1).

        Returns
        -------
        low and high, float64 arrays (n,), 0 <= low < high <= 1.
        """
        holders = self._grid()
        least, most = self._region(holders, level)
        distinct, place = np.unique(counts, return_inverse=True)
        high = np.interp(distinct, least, holders) / self.reports
        low = np.interp(distinct, most, holders) / self.reports
        is_point = low >= high
        low[is_point] = np.maximum(np.nextafter(low[is_point], -np.inf), 0)
        high[is_point] = np.minimum(np.nextafter(high[is_point], np.inf), 1)
        return IntervalEnds(low[place], high[place])

    def _grid(self) -> FloatArray:
        """Whole holders from 0 to N, dense near both, float64 (n,), ascending."""
        error = np.sqrt(self._variance(np.array([0.0, self.reports])).min()) / self.contrast
        first = min(max(1.0, _LEAST_DISTANCE * float(error)), self.reports)
        steps = int(np.log(self.reports / first) / np.log(_RATIO)) + 2
        near = np.concatenate([np.arange(_FIRST_HOLDERS), np.geomspace(first, self.reports, steps)])
        near = np.minimum(np.rint(near), self.reports)
        return np.unique(np.concatenate([near, self.reports - near]))

    def _variance(self, holders: FloatArray) -> FloatArray:
        """Variance of the count, float64 (n,), > 0."""
        misses, hits = self.miss * (1 - self.miss), self.hit * (1 - self.hit)
        return np.maximum((self.reports - holders) * misses + holders * hits, _SMALLEST)

    def _region(self, holders: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the ends between which a count is accepted, float64 (n,) each, ascending with the holders.

        A count x is accepted if P(X <= x) and P(X >= x) are above the region's tails, as x is above the first
        end and below the second.
        """
        deviation = np.sqrt(self._variance(holders))
        scaled, bound = holders * self.contrast / deviation, self.reports * self.contrast / deviation
        radius = radius_of(scaled, bound, level)
        below, above = region_of(scaled, bound, radius)
        least = self._quantile(holders, -np.minimum(scaled - below, _LARGEST_QUANTILE)) - 0.5
        most = self._quantile(holders, np.minimum(above - scaled, _LARGEST_QUANTILE)) + 0.5
        least[np.isneginf(below)] = -1  # of no holders: no count is too small
        most[np.isposinf(above)] = self.reports + 1
        return np.maximum.accumulate(least), np.minimum.accumulate(most[::-1])[::-1]

    def _quantile(self, holders: FloatArray, normal: FloatArray) -> FloatArray:
        """Return the count, without continuity correction, whose signed root is this normal quantile.

        Newton steps on the saddlepoint s, and halvings of its bracket where they do not converge, as where
        nearly no report is false. Quantiles beyond the tail of the farthest count give about 0 or N.
        """
        sign, deviation = np.sign(normal), np.sqrt(self._variance(holders))
        size = 2 * np.log1p(np.abs(normal) / (2 * deviation))
        inner, outer, last = np.zeros(len(size)), np.full(len(size), _FARTHEST), np.full(len(size), np.inf)
        count, rest = np.empty(len(size)), np.arange(len(size))
        for _ in range(_MOST_STEPS):
            root, slope, count[rest] = self._signed_root(holders[rest], sign[rest] * size[rest])
            excess = sign[rest] * (root - normal[rest])
            inner[rest] = np.where(excess < 0, size[rest], inner[rest])
            outer[rest] = np.where(excess < 0, outer[rest], size[rest])
            step = size[rest] - excess / slope
            is_near = (step > inner[rest]) & (step < outer[rest]) & (np.abs(excess) < last[rest] / 2)
            last[rest] = np.abs(excess)
            size[rest] = np.where(is_near, step, (inner[rest] + outer[rest]) / 2)
            rest = rest[(np.abs(excess) > _TOLERANCE) & (outer[rest] - inner[rest] > _TOLERANCE)]
            if not len(rest):
                break
        return count

    def _signed_root(self, holders: FloatArray, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the signed root at saddlepoint s, != 0, about its slope in s, and the tilted mean."""
        total = slope = mean = np.zeros(len(holders))
        for clients, rate in ((holders, self.hit), (self.reports - holders, self.miss)):
            tilted = tilted_trial(s, rate)
            total = total + clients * log_of_trial(s, rate)
            mean, slope = mean + clients * tilted.mean, slope + clients * tilted.variance
        slope = np.maximum(slope, _SMALLEST)
        found = roots(s, s * mean - total, slope)
        return found.deviate, np.abs(s) * slope / np.abs(found.w), mean
