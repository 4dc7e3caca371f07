"""One-sided tests of frequency > 0, and the Benjamini-Hochberg procedure for many of them."""

import math

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray

FALSE_DISCOVERY_RATE = 0.05
ALLOWED_RATES = (1e-9, 0.5)  # of comparisons, from the lowest to the highest


def normal_tail(z: FloatArray) -> FloatArray:
    """P(Z >= z) of a standard normal Z: erfc(z / sqrt(2)) / 2, with 12 digits far into the tail.

    Parameters
    ----------
    z : float64 array (n,).

    Returns
    -------
    float64 array (n,), in [0, 1]; 0 beyond z = 38.
    """
    return np.array([math.erfc(value) for value in (z / math.sqrt(2)).tolist()]) / 2


def binomial_tail(counts: NDArray[np.int64], trials: int, probability: float | FloatArray) -> FloatArray:
    """Upper bound on P(X >= count) for X ~ Bin(N, q); it is at most the exact P(X >= count - 1).

    Zubkov and Serov: P(X <= j) >= Phi(sign(j/N - q) sqrt(2 N KL(j/N || q))), here with j = count - 1. The
    normal tail of the standardized count would be far too small where few reports are expected.

    Parameters
    ----------
    counts : int64 array (n,), each in [0, trials].
    trials : N, >= 1.
    probability : q, in (0, 1); one, or float64 array (n,).

    Returns
    -------
    float64 array (n,), in (0, 1]; 1 where count - 1 is not above N q.

    Source: Zubkov, Serov, "A complete proof of universal inequalities for the distribution function of the
    binomial law", Theory of Probability and its Applications 57 (2013), theorem 1.
    """
    tail = np.ones(len(counts))
    above = np.flatnonzero(counts - 1 > trials * probability)
    share, rate = (counts[above] - 1) / trials, np.broadcast_to(probability, counts.shape)[above]
    divergence = share * np.log(share / rate) + (1 - share) * np.log((1 - share) / (1 - rate))
    tail[above] = normal_tail(np.sqrt(2 * trials * np.maximum(divergence, 0)))
    return tail


def benjamini_hochberg(p_values: FloatArray, rate: float = FALSE_DISCOVERY_RATE) -> NDArray[np.bool_]:
    """Select discoveries with an expected share of false ones of at most `rate`.

    Selects all p-values up to the largest p_(i) <= rate i / n, where i is its rank among n. The rate holds
    for independent and for positively dependent tests.

    Parameters
    ----------
    p_values : float64 array (n,), each in [0, 1].
    rate : false-discovery rate, in (0, 1).

    Returns
    -------
    bool array (n,), True for a discovery.

    Source: Benjamini, Hochberg, J. R. Statist. Soc. B 57 (1995), section 3.1.
    """
    ranked = np.sort(p_values)
    passed = np.flatnonzero(ranked <= rate * np.arange(1, len(ranked) + 1) / len(ranked))
    if len(passed) == 0:
        return np.zeros(len(p_values), bool)
    discoveries: NDArray[np.bool_] = p_values <= ranked[passed[-1]]
    return discoveries
