"""Acceptance regions of Feldman and Cousins: which estimates are likely enough for a true share.

Estimates and shares are in units of the standard error: the share is in [0, B], and the estimate is normal
around it with variance 1. Estimates are ranked by their likelihood ratio: that of the share over that of the
best share in [0, B]. The region holds the highest ranks, with the probability `level`. A share is in the
interval of an estimate if the estimate is in the region of the share.

Source: Feldman, Cousins, "Unified approach to the classical statistical analysis of small signals",
Phys. Rev. D 57 (1998), section IV B, with a second boundary at B.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from deniable.estimators.arrays import FloatArray

LEVEL = 0.95
# Bisections of [0, 1.96]: to 2e-12.
_HALVINGS = 40


def level_for_all(values: int) -> float:
    """Return the level of n intervals that hold all n shares at once with 95 %: 1 - 0.05 / n (Bonferroni).

    Parameters
    ----------
    values : n, >= 1.
    """
    return 1 - (1 - LEVEL) / values


def quantile_of(level: float) -> float:
    """Return half the width of an interval of this level far from all boundaries, in standard errors.

    Parameters
    ----------
    level : probability, in (0, 1); 1.96 for 95 %.
    """
    return float(-ndtri((1 - level) / 2))


def region_of(share: FloatArray, most: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return both ends of {x: -2 ln R(x) <= r²}, where R is the likelihood ratio of the share.

    The best share is x clipped to [0, B], so -2 ln R is (x - m)² inside of [0, B], m² - 2 x m below 0, and
    (B - m)² + 2 (x - B)(B - m) above B. It rises on both sides of x = m.

    Parameters
    ----------
    share : float64 array (n,), m, in [0, B].
    most : float64 array (n,), B > 0: 1 over the standard error.
    radius : float64 array (n,), r >= 0.

    Returns
    -------
    low and high, float64 arrays (n,); -inf for m = 0 and inf for m = B, unless r is 0 there.
    """
    rest = most - share
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.where(radius <= share, share - radius, (share - radius**2 / share) / 2)
        above = np.where(radius <= rest, share + radius, most - (rest - radius**2 / rest) / 2)
    return below, above


def radius_of(share: FloatArray, most: FloatArray, level: float = LEVEL) -> FloatArray:
    """Return the r with which the region has the probability `level`.

    For 95 % it is 1.96 if no boundary is within 1.96, and 1.645 at a boundary: there the region is one-sided.

    Parameters
    ----------
    share : float64 array (n,), m, in [0, B].
    most : float64 array (n,), B > 0.
    level : probability of the region, in (0, 1).

    Returns
    -------
    float64 array (n,), in (0, `quantile_of(level)`].
    """
    low, high = np.zeros(len(share)), np.full(len(share), quantile_of(level))
    for _ in range(_HALVINGS):
        radius = (low + high) / 2
        below, above = region_of(share, most, radius)
        is_short = ndtr(above - share) - ndtr(below - share) < level
        low, high = np.where(is_short, radius, low), np.where(is_short, high, radius)
    return high


def is_accepted(
    estimate: FloatArray, share: FloatArray, most: FloatArray, level: float = LEVEL
) -> NDArray[np.bool_]:
    """Whether estimates are in the region of a share: what ranks higher has at most the probability `level`.

    Parameters
    ----------
    estimate : float64 array (n,), any reals.
    share : float64 array (n,), m, in [0, B].
    most : float64 array (n,), B > 0.
    level : probability of the region, in (0, 1).

    Returns
    -------
    bool array (n,).
    """
    best = np.clip(estimate, 0, most)
    radius = np.sqrt(np.maximum((estimate - share) ** 2 - (estimate - best) ** 2, 0))
    below, above = region_of(share, most, radius)
    accepted: NDArray[np.bool_] = ndtr(above - share) - ndtr(below - share) <= level
    return accepted
