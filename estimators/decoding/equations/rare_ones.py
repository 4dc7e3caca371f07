"""Tails of estimates from few false ones, which are heavier above than those of a normal.

An absent candidate's estimate is a sum over the ones of its bits, of mean 0, of which each moves it by `step`
standard deviations. Its tail is taken for that of a compensated Poisson count, as by Bennett, with half a
count of continuity: P(Z >= r), where r = sqrt(2 h(y)) / step, y = step (z - step / 2), and h(y) is
(1 + y) ln(1 + y) - y. With a few hundred false ones of a candidate's bits, r is z to 5 % at z = 3.

Domain: noise of the reports. What unlisted strings add is `misfit`, whose tails are those of a normal.

Source: Bennett, J. Am. Statist. Assoc. 57 (1962), equation 8b.
"""

import numpy as np

from estimators.arrays import FloatArray

_STEPS = 20


def deviate_of(z: FloatArray, step: FloatArray) -> FloatArray:
    """Return r, the deviate of a normal whose tail is that of z; z itself below 0.

    Parameters
    ----------
    z : float64 array (n,), estimate over standard error.
    step : float64 array (n,), see `BitCounts.step`.
    """
    y = step * np.maximum(z - step / 2, 0)
    r = np.sqrt(2 * np.maximum((1 + y) * np.log1p(y) - y, 0)) / step
    return np.where(z > 0, np.minimum(r, z), z)


def widening(quantile: float, step: FloatArray) -> FloatArray:
    """Return z over r where r is the quantile, float64 (n,), >= 1: the factor on half an interval.

    Parameters
    ----------
    quantile : half the width of the interval of a normal, in standard errors, > 0.
    step : float64 array (n,), see `BitCounts.step`.
    """
    wanted = np.square(quantile * step) / 2
    y = np.sqrt(2 * wanted) + wanted / 3  # below the root
    for _ in range(_STEPS):
        y = y - ((1 + y) * np.log1p(y) - y - wanted) / np.log1p(y)
    return np.maximum((y / step + step / 2) / quantile, 1)
