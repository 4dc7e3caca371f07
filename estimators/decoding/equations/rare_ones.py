"""Tails of estimates from few false ones, which are heavier above than those of a normal.

An absent candidate's estimate is a sum over the ones of its bits, of mean 0, of which each moves it by `step`
standard deviations. Its tail is taken for that of a compensated Poisson count, as by Bennett, with half a
count of continuity: P(Z >= r), where r = sqrt(2 h(y)) / step, y = step (z - step / 2), and h(y) is
(1 + y) ln(1 + y) - y. With a few hundred false ones of a candidate's bits, r is z to 5 % at z = 3.

Domain: noise of the reports. What unlisted strings add is `misfit`, whose tails are those of a normal.

Source: Bennett, J. Am. Statist. Assoc. 57 (1962), equation 8b.
"""

import numpy as np
from scipy.sparse import csc_array

from estimators.arrays import FloatArray
from estimators.decoding.bit_counts import BitCounts

_STEPS = 20
_LEAST_ONES = 1e-6  # of a candidate without bits, whose error is infinite


def step_of(counts: BitCounts, design: csc_array) -> FloatArray:
    """Return by how many standard deviations one false one moves the estimate of an absent candidate.

    Parameters
    ----------
    counts : BitCounts.
    design : csc_array (cohorts * bits, n), 1 where a candidate sets the bit.

    Returns
    -------
    float64 array (n,), > 0; `overlap` reports of a client move it at once.
    """
    p_star, sizes = counts.channel.p_star, np.repeat(counts.cohort_sizes, counts.ones.shape[1])
    ones: FloatArray = design.T @ (sizes * p_star * (1 - p_star))
    return np.sqrt(counts.overlap / np.maximum(ones, _LEAST_ONES))


def deviate_of(z: FloatArray, step: FloatArray) -> FloatArray:
    """Return r, the deviate of a normal whose tail is that of z; z itself below 0.

    Parameters
    ----------
    z : float64 array (n,), estimate over standard error.
    step : float64 array (n,), see `step_of`.
    """
    y = step * np.maximum(z - step / 2, 0)
    r = np.sqrt(2 * np.maximum((1 + y) * np.log1p(y) - y, 0)) / step
    return np.where(z > 0, np.minimum(r, z), z)


def widening(quantile: float, step: FloatArray) -> FloatArray:
    """Return z over r where r is the quantile, float64 (n,), >= 1: the factor on half an interval.

    Parameters
    ----------
    quantile : half the width of the interval of a normal, in standard errors, > 0.
    step : float64 array (n,), see `step_of`.
    """
    wanted = np.square(quantile * step) / 2
    y = np.sqrt(2 * wanted) + wanted / 3  # below the root
    for _ in range(_STEPS):
        y = y - ((1 + y) * np.log1p(y) - y - wanted) / np.log1p(y)
    return np.maximum((y / step + step / 2) / quantile, 1)
