"""A canary: a k-RR collection whose values are drawn from known frequencies."""

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.traits import SymmetricChannel

MOST_VALUES = 16
# Reports per bucket. With as many, the false-alarm rate is within 20 % of the nominal one (70 % for two
# values, whose statistic is coarse), as tests show by exact enumeration. Pearson's statistic would give up to
# 3 times as many false alarms.
LEAST_EXPECTED = 50


def true_frequencies(k: int) -> FloatArray:
    """Return frequencies that halve from each value to the next, float64 (k,), summing to 1; k in [2, 16].

    All differ, so that swapped values are detected. With equal frequencies reports would be uniform at every
    epsilon, and a wrong epsilon would go undetected.
    """
    weights = 0.5 ** np.arange(k)
    frequency: FloatArray = weights / weights.sum()
    return frequency


def report_shares(mechanism: SymmetricChannel) -> FloatArray:
    """P(report y), truths drawn from theta = `true_frequencies`, float64 (k,): p theta + q (1 - theta)."""
    truth = true_frequencies(mechanism.k)
    shares: FloatArray = mechanism.p * truth + mechanism.q * (1 - truth)
    return shares


def least_reports(mechanism: SymmetricChannel) -> int:
    """Return the smallest number of reports at which every bucket expects LEAST_EXPECTED."""
    return int(np.ceil(LEAST_EXPECTED / report_shares(mechanism).min()))
