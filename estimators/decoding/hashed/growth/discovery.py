"""Which texts of the last level are found, at a stated rate of false ones, and how frequent they are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.intervals.conditional import selected_interval, selected_quantile
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import normal_tail

_LEAST_ERRORS = 1.5  # below, a p-value counts as 1, which is never too small
_HALVINGS = 60


@dataclass(frozen=True)
class AbsentTail:
    """The law of the estimate of a text that nobody has.

    Its supports are a binomial, whose tail is bounded by its Kullback-Leibler distance: a normal's would be
    far too small where few reports are expected. Collisions add to the variance, so the distance, in standard
    errors of the binomial, is divided by the share that the binomial has in the error.

    Parameters
    ----------
    channel : of a support.
    reports : N of the level, >= 1.
    collisions : standard error of collisions, a fraction.

    Source: Zubkov, Serov (2013), theorem 1; see `binomial_tail`.
    """

    channel: Inversion
    reports: int
    collisions: float

    @property
    def std_error(self) -> float:
        """Standard error of the estimate, a fraction of all reports."""
        return float(np.hypot(self._noise, self.collisions))

    @property
    def _noise(self) -> float:
        return float(self.channel.std_error(np.zeros(1), self.reports)[0])

    def distance(self, inverted: FloatArray) -> FloatArray:
        """Return how many standard errors of a normal an estimate is above 0, float64 (n,), >= 0."""
        miss = self.channel.miss
        share = np.clip(miss + self.channel.contrast * inverted - 1 / self.reports, miss, 1 - 1e-12)
        divergence = share * np.log(share / miss) + (1 - share) * np.log((1 - share) / (1 - miss))
        found: FloatArray = (
            np.sqrt(2 * self.reports * np.maximum(divergence, 0)) * self._noise / self.std_error
        )
        return found

    def p_values(self, inverted: FloatArray) -> FloatArray:
        """Return an upper bound on P(an estimate is as large), float64 (n,); 1 for small estimates."""
        tail = np.ones(len(inverted))
        far = np.flatnonzero(inverted > _LEAST_ERRORS * self.std_error)
        tail[far] = normal_tail(self.distance(inverted[far]))
        return tail

    def threshold(self, p_value: FloatArray) -> FloatArray:
        """Return the estimate with each p-value, float64 (n,), from p-values in (0, 0.05]."""
        low, high = np.zeros(len(p_value)), np.ones(len(p_value))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            is_above = normal_tail(self.distance(middle)) < p_value
            low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
        return high


@dataclass(frozen=True, eq=False)
class Discovery:
    """Texts found, the largest estimate before the selection first; fractions of all reports, float64 (m,).

    Parameters
    ----------
    place : int64 array (m,), of each among the tested ones.
    frequency : unbiased in the median, given that the text is found; in [0, 1].
    std_error : of the estimate before the selection.
    low, high : 95 % interval, given that the text is found; within [0, 1].
    """

    place: NDArray[np.int64]
    frequency: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray


def discover(
    inverted: FloatArray, weights: FloatArray, absent: AbsentTail, rate: float, sampled: float = 0.0
) -> Discovery:
    """Select texts with an expected share of false ones of at most `rate`: of texts that nobody has.

    A weighted Benjamini-Hochberg procedure: p-values divided by weights of mean 1. The clients of the last
    level are others than those of all former ones, so weights, which texts are tested at all, and their
    number are independent of the p-values: the rate is that of the whole search. Given the other tests, a
    text is selected if it passes a fixed threshold, so that intervals can take the selection into account.

    Parameters
    ----------
    inverted : float64 array (n,), estimates of the last level alone.
    weights : float64 array (n,), >= 0, from former levels alone; scaled to mean 1 here.
    absent : of the last level.
    rate : false-discovery rate, in (0, 1).
    sampled : variance of frequencies among all clients, of which the last level has a random sample, in units
        of f (1 - f) / N: the share of reports of other levels.

    Source: Genovese, Roeder, Wasserman, "False discovery control with p-value weighting" (Biometrika 93,
    2006), theorem 1; Benjamini, Hochberg (1995) for the procedure.
    """
    scaled = weights / weights.mean() if len(weights) else weights
    with np.errstate(divide="ignore"):
        weighted = absent.p_values(inverted) / scaled
    ranked = np.sort(weighted)
    passed = np.flatnonzero(ranked <= rate * np.arange(1, len(ranked) + 1) / len(ranked))
    if len(passed) == 0:
        none = np.zeros(0)
        return Discovery(np.zeros(0, np.int64), none, none, none, none)
    most = rate * (passed[-1] + 1) / len(ranked)
    place = np.flatnonzero(weighted <= most)
    place = place[np.argsort(-inverted[place], kind="stable")]
    x = inverted[place]
    std_error = np.hypot(absent.channel.std_error(x, absent.reports), absent.collisions)
    inside = np.clip(x, 0, 1)
    std_error = np.hypot(std_error, np.sqrt(sampled * inside * (1 - inside) / absent.reports))
    threshold = np.minimum(absent.threshold(np.minimum(most * scaled[place], 0.05)), x)
    low, high = selected_interval(x, std_error, threshold)
    middle = selected_quantile(x, std_error, threshold, 0.5)
    return Discovery(place, np.clip(middle, 0, 1), std_error, np.clip(low, 0, 1), np.clip(high, 0, 1))
