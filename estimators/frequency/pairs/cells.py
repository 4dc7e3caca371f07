"""Intervals of joint shares: by exact tails where few reports are false, of normal errors where many are."""

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.two_binomials import TwoBinomials
from deniable.estimators.frequency.intervals.unified import unified_interval
from deniable.estimators.frequency.pairs.table import std_error, std_error_without
from deniable.estimators.mechanisms.matrix.pair import PairKRR

# Variance, in reports squared, of a pair that nobody has, from which on its errors are normal.
_NORMAL_FROM = 64.0
_LEAST = 1e-9
# Noise is rounded up to powers of this, so that pairs share their tests.
_RATIO = 1.3


def cell_intervals(unconstrained: FloatArray, reports: int, mechanism: PairKRR, level: float) -> IntervalEnds:
    """Return the interval of every pair's share.

    A report adds at most 1 / (c c') reports to an entry of the inverted table, where c and c' are the
    contrasts of the fields, and most reports add that or nearly nothing. So in these units an entry is like a
    count of true and false reports, of the variance that a pair without holders has, and `TwoBinomials` has
    its interval. Reports that share one value with the pair subtract, so an entry falls further than a count,
    but no further than a normal: the high end is at least that of `unified_interval`, as are both where that
    variance is 64 and more.

    Parameters
    ----------
    unconstrained : float64 array (K1, K2), the inverted table.
    reports : N, >= 1.
    mechanism : PairKRR of the reports.
    level : probability of covering the true share, in [0.9, 1).

    Returns
    -------
    low and high, float64 arrays (K1 K2,), by rows, fractions.
    """
    first, second = mechanism.fields
    contrast, share = first.contrast * second.contrast, unconstrained.ravel()
    low, high = unified_interval(share, std_error(unconstrained, reports, mechanism).ravel(), level=level)
    noise = (std_error_without(unconstrained, reports, mechanism).ravel() * reports * contrast) ** 2
    powers = np.ceil(np.log(np.maximum(noise, _LEAST)) / np.log(_RATIO))
    for power in np.unique(powers[noise < _NORMAL_FROM]):
        rate = _RATIO**power / reports
        miss = 2 * rate / (1 + np.sqrt(max(1 - 4 * rate, 0)))  # miss (1 - miss) = rate
        miss = min(miss, (1 - contrast) / 2)
        test = TwoBinomials(reports, miss + contrast, miss, contrast)
        inside = powers == power
        least, most = test.interval(reports * (miss + contrast * share[inside]), level)
        low[inside], high[inside] = least, np.maximum(high[inside], most)
    return IntervalEnds(low, high)
