"""Tests of a candidate's share by its supports, whose tails are far from normal where these are few.

The supports S of a candidate with the share f are a sum of independent counts: Bin(N f, hit) of the reports
that hold it, and those of all others, each with a probability whose mean is `miss`. Fixed values and
functions make these unequal, and by Hoeffding their tails are at most those of the binomial with the mean
probability. What else moves S, by mean 0 and at most `jump` at a time, has the cumulants of a compensated
Poisson count of the same variance, by Bennett an upper bound: collisions with unlisted texts, the sample of
clients of a tree's last level, and what returning clients repeat.

Tails are saddlepoint approximations, with half a count of continuity, of P(S >= s) and P(S <= s). Against
exact sums they are off by at most 4 % of themselves, from one report on. So tests reject no more often than
their level, up to that, and less often where counts are few.
"""

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.acceptance import quantile_of, radius_of
from deniable.estimators.frequency.intervals.saddlepoint import (
    log_of_spread,
    log_of_trial,
    roots,
    tilted_spread,
    tilted_trial,
)
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool

_STEPS, _SETTLED = 60, 1e-5
_PART = 1 << 13  # candidates whose arrays stay in a processor's cache
_MORE_MISSED = 1.4
# Of ln theta: half the width of the bracket, and the least slope of the logarithm of the deviate.
_WIDEST, _LEAST_SLOPE, _LEAST_DEVIATE, _LEAST_ROOT = 12.0, 0.1, 1e-3, 1e-12


class _Tail(NamedTuple):
    """At a saddlepoint: the share whose tilted mean is the count, and the normal deviate of its tail."""

    share: FloatArray
    deviate: FloatArray


@dataclass(frozen=True, eq=False)
class SupportTest:
    """The test of every share f in [0, 1] of n candidates by P(S >= s), see the module.

    Parameters
    ----------
    supports : float64 array (n,), s, whole numbers in [0, reports].
    reports : N, >= 1.
    hit : float64 array (n,), P(support | the report holds the candidate), in (miss, 1).
    miss : float64 array (n,), mean of P(support) over the reports that do not, in (0, hit).
    spread_0, spread_1 : float64 arrays (n,), variance of S beyond both counts if f is 0 or 1, >= 0.
    jump : most by which one cause of that moves S, > 0.
    shifted : the test if collisions add as much as to hardly any candidate; None without. Functions never
        change, so a candidate that they move is moved in every window.

    Source: Hoeffding, Ann. Math. Statist. 27 (1956), theorem 4; Bennett, J. Am. Statist. Assoc. 57 (1962);
    `saddlepoint`, for the tails.
    """

    supports: FloatArray
    reports: int
    hit: FloatArray
    miss: FloatArray
    spread_0: FloatArray
    spread_1: FloatArray
    jump: float
    shifted: "SupportTest | None" = None

    def interval(self, level: float) -> IntervalEnds:
        """Return the shares that are not rejected by the tails of Feldman and Cousins, together 1 - level.

        A low end is also not rejected by `shifted` at a level that misses `_MORE_MISSED` times as often.
        Where the variance v of S is 100 they are 2.5 % longer than those of a normal, and 10 % at 6.

        Parameters
        ----------
        level : probability of covering the true share, in [0.9, 1).

        Returns
        -------
        low and high, float64 arrays (n,), 0 <= low < high <= 1.

        Source: Feldman, Cousins, Phys. Rev. D 57 (1998), section IV B.
        """
        starts = range(0, len(self.supports), _PART)
        parts = [self._of(slice(first, first + _PART)) for first in starts]
        lows = [part._lower_end(level) for part in parts]
        highs = [1 - part._mirrored()._lower_end(level) for part in parts]
        low, high = np.concatenate(lows), np.concatenate(highs)
        if self.shifted is not None and len(above_0 := np.flatnonzero(low)):
            ends = self.shifted._of(above_0)._lower_end(1 - _MORE_MISSED * (1 - level))
            low[above_0] = np.minimum(low[above_0], ends)
        low, high = np.minimum(low, high), np.maximum(low, high)  # they cross for counts that no reports give
        is_point = low == high
        low[is_point] = np.maximum(np.nextafter(low[is_point], -np.inf), 0)
        high[is_point] = np.minimum(np.nextafter(high[is_point], np.inf), 1)
        return IntervalEnds(low, high)

    def deviates_of_absent(self) -> FloatArray:
        """Return the normal deviate whose tail is P(S >= s) for f = 0, float64 (n,); -inf below the mean."""
        return self._of_absent()[1]

    def _of_absent(self) -> tuple[FloatArray, FloatArray]:
        """Return the saddlepoint for f = 0, or 0, and its deviate; K' = s - 1/2 by Newton, K' is convex."""
        theta, deviate = np.zeros(len(self.supports)), np.full(len(self.supports), -np.inf)
        above = np.flatnonzero(self.supports - 0.5 > self.reports * self.miss * (1 + _SETTLED))
        if len(above):
            part = self._of(above)
            theta[above] = part._tilt_of_absent()
            deviate[above] = part._tail(theta[above], absent=True).deviate
        return theta, deviate

    def _lower_end(self, level: float) -> FloatArray:
        """Return the least share whose upper tail does not reject s."""
        ends = np.zeros(len(self.supports))
        theta, deviate = self._of_absent()
        chosen = np.flatnonzero(deviate > self._radius(ends, level))
        if len(chosen):
            ends[chosen] = self._of(chosen)._solved(level, np.log(theta[chosen]))
        return ends

    def _radius(self, share: FloatArray, level: float) -> FloatArray:
        """Return how far the region of a share reaches above it, in standard errors, float64 (n,)."""
        deviation = np.sqrt(self._variance(share)) / (self.reports * (self.hit - self.miss))
        from_0, from_1 = share / deviation, (1 - share) / deviation
        shares, radii = _radii(level)
        nearest = np.where(from_0 + from_1 < 2 * radii[-1], np.inf, np.minimum(from_0, from_1))
        radius = np.interp(nearest, shares, radii)
        return np.where(radius <= from_1, radius, (from_1 + radius**2 / np.maximum(from_1, 1e-9)) / 2)

    def _variance(self, share: FloatArray) -> FloatArray:
        holders, others = self.hit * (1 - self.hit), self.miss * (1 - self.miss)
        counted: FloatArray = self.reports * (share * holders + (1 - share) * others)
        variance: FloatArray = counted + self.spread_0 + share * (self.spread_1 - self.spread_0)
        return variance

    def _solved(self, level: float, high: FloatArray) -> FloatArray:
        """Follow ln theta, below that of f = 0, to where the deviate is the radius: bracketed secants."""
        inside = np.clip((self.supports / self.reports - self.miss) / (self.hit - self.miss), 0, 1)
        size = np.log(self._radius(inside, level) / np.sqrt(self._variance(inside) + 1))
        size = np.minimum(size, high - 1e-3)
        low, before, excess = size - _WIDEST, size - 1, np.full(len(size), -1.0)
        rest = np.arange(len(size))
        for _ in range(_STEPS):
            part = self._of(rest)
            inside[rest], deviate = part._tail(np.exp(size[rest]))
            reached = np.log(np.maximum(deviate, _LEAST_DEVIATE) / part._radius(inside[rest], level))
            low[rest] = np.where(reached < 0, size[rest], low[rest])
            high[rest] = np.where(reached < 0, high[rest], size[rest])
            slope = (reached - excess[rest]) / (size[rest] - before[rest])
            step = size[rest] - reached / np.where(slope > _LEAST_SLOPE, slope, 1.0)
            is_inside = (step > low[rest]) & (step < high[rest])
            before[rest], excess[rest] = size[rest], reached
            size[rest] = np.where(is_inside, step, (low[rest] + high[rest]) / 2)
            rest = rest[(np.abs(reached) > _SETTLED) & (np.abs(size[rest] - before[rest]) > _SETTLED)]
            if not len(rest):
                break
        return inside

    def _tilt_of_absent(self) -> FloatArray:
        """Solve K'(theta) = s - 1/2 for f = 0 by Newton, from above: K' is convex there."""
        count, mean = self.supports - 0.5, self.reports * self.miss
        with np.errstate(divide="ignore"):
            of_binomial = np.log(count / np.maximum(self.reports - count, 0.25)) - np.log(
                self.miss / (1 - self.miss)
            )
            of_spread = np.log1p((count - mean) * self.jump / self.spread_0) / self.jump
        theta: FloatArray = np.minimum(of_binomial, of_spread)
        for _ in range(_STEPS):
            miss, spread = tilted_trial(theta, self.miss), tilted_spread(theta, self.jump)
            slope = self.reports * miss.variance + self.spread_0 * spread.variance
            step = (self.reports * miss.mean + self.spread_0 * spread.mean - count) / slope
            theta = theta - step
            if np.abs(step).max() <= _SETTLED:
                break
        return theta

    def _tail(self, theta: FloatArray, *, absent: bool = False) -> _Tail:
        """Return f with K'(theta) = s - 1/2, or 0, and r* = w + ln(u / w) / w, the deviate of P(S >= s)."""
        count, reports = self.supports - 0.5, self.reports
        hit, miss = tilted_trial(theta, self.hit), tilted_trial(theta, self.miss)
        moved, change = tilted_spread(theta, self.jump), self.spread_1 - self.spread_0
        share = np.zeros(len(theta))
        if not absent:
            rest = count - reports * miss.mean - self.spread_0 * moved.mean
            share = np.maximum(rest / (reports * (hit.mean - miss.mean) + change * moved.mean), 0)
        holders, others = reports * share, reports * (1 - share)
        spread = np.maximum(self.spread_0 + change * share, 0)
        log_mean = holders * log_of_trial(theta, self.hit) + others * log_of_trial(theta, self.miss)
        log_mean += spread * log_of_spread(theta, self.jump)
        exponent, counted = theta * count - log_mean, holders * hit.variance + others * miss.variance
        # Rare jumps leave the counts between them as they are: no more is corrected than for jumps of 1.
        found, of_ones = (
            roots(theta, exponent, counted + spread * tilted_spread(theta, jump).variance, _LEAST_ROOT)
            for jump in (self.jump, 1.0)
        )
        correction = np.minimum(np.log(found.u / found.w), np.maximum(np.log(of_ones.u / of_ones.w), 0))
        return _Tail(np.minimum(share, 1), found.w + correction / found.w)

    def _mirrored(self) -> "SupportTest":
        """Return the test of 1 - f by the reports that do not support the candidate."""
        return SupportTest(
            self.reports - self.supports,
            self.reports,
            1 - self.miss,
            1 - self.hit,
            self.spread_1,
            self.spread_0,
            self.jump,
        )

    def _of(self, places: NDArray[np.intp] | slice) -> "SupportTest":
        columns = (self.supports, self.hit, self.miss, self.spread_0, self.spread_1)
        supports, hit, miss, spread_0, spread_1 = (column[places] for column in columns)
        return SupportTest(supports, self.reports, hit, miss, spread_0, spread_1, self.jump)


@cache
def _radii(level: float) -> tuple[FloatArray, FloatArray]:
    """Shares far from 1, in standard errors, and how far their regions reach above them."""
    quantile = quantile_of(level)
    shares = np.linspace(0, quantile + 0.04, 401)
    return shares, radius_of(shares, np.full(len(shares), 4 * quantile), level)


class Spread(NamedTuple):
    """Variance of an estimate beyond that of its supports given their functions, fractions.

    Parameters
    ----------
    of_absent, of_all : if the candidate's share is 0, or 1; numbers or float64 arrays (n,), >= 0.
    jump : most reports by which one cause of it moves the supports, > 0; collisions have their own.
    fixed : part of both that is of collisions, which move a candidate alike in every window.
    collision_jump : most reports by which one collision moves the supports, >= 0.
    shift : supports that collisions add to hardly any candidate, see `largest_shift`; >= 0.
    """

    of_absent: FloatArray | float
    of_all: FloatArray | float
    jump: float
    fixed: float
    collision_jump: float
    shift: float


def support_test(
    inverted: FloatArray, known: FloatArray, reports: int, mechanism: FunctionPool, spread: Spread
) -> SupportTest:
    """Return the test of candidates by all their supports, whose known collisions are part of `miss`.

    Parameters
    ----------
    inverted : float64 array (n,), estimates, unconstrained, fractions of all reports.
    known : float64 array (n,), what was taken out of each, see `InvertedWords`.
    reports : N, >= 1.
    mechanism : of the reports, local hashing with or without permanent responses.
    spread : see `Spread`.
    """
    response, contrast, size = mechanism.response, mechanism.contrast, inverted.shape
    of_others = known / np.maximum(1 - np.clip(inverted, 0, 1), 0.01)  # per report that does not hold it
    supports = np.rint(np.clip(reports * (mechanism.miss + contrast * (inverted + known)), 0, reports))
    miss = mechanism.miss + contrast * of_others
    scale = (reports * contrast) ** 2

    def test(extra: float, taken: float, jump: float, shifted: SupportTest | None) -> SupportTest:
        return SupportTest(
            supports=supports,
            reports=reports,
            hit=np.full(size, mechanism.hit),
            miss=np.clip(miss, response.q, (response.q + response.p) / 2) + extra,
            spread_0=np.broadcast_to(scale * np.maximum(spread.of_absent - taken, 0), size),
            spread_1=np.broadcast_to(scale * np.maximum(spread.of_all - taken, 0), size),
            jump=jump,
            shifted=shifted,
        )

    extra = min(spread.shift / reports, (response.p - response.q) / 4)
    shifted = test(extra, spread.fixed, spread.jump, None) if extra else None
    return test(0.0, 0.0, max(spread.jump, spread.collision_jump), shifted)
