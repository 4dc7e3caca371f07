"""Exact composition: (epsilon, delta) of independent outputs, by convolving their privacy loss distributions.

Source: Koskela, Jälkö, Honkela, "Computing tight differential privacy guarantees using FFT" (AISTATS 2020).
"""

import math

import numpy as np

from deniable.estimators.accounting.privacy_loss import PrivacyLoss
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT

# Both tails of a convolution are truncated where all masses are below SMALLEST. There are at most 64
# convolutions of at most 2^32 masses, and mass lost in one counts at most 2^32 times in the end: in all less
# than LOST.
SMALLEST = 1e-100
LOST = 1e-78


def delta_at(loss: PrivacyLoss, epsilon: float) -> float:
    """Upper bound on the smallest delta for which all copies together are (epsilon, delta) private.

    delta = sum of P(y) (1 - exp(epsilon - L(y))) over the outputs y with loss L(y) > epsilon, the
    hockey-stick divergence. The result exceeds it by at most a relative `_rounding` (3e-11 for 10,000 k-RR
    reports), plus 1e-78, plus the effect of lowering epsilon by 2^-50 of the largest loss.

    Parameters
    ----------
    loss : PrivacyLoss.
    epsilon : nats, >= 0.

    Returns
    -------
    delta, in [0, 1].

    Raises
    ------
    ValueError if epsilon is out of range.

    Source: Dwork, Rothblum, Vadhan, "Boosting and differential privacy" (FOCS 2010); Koskela, Jälkö, Honkela,
    "Computing tight differential privacy guarantees using FFT" (AISTATS 2020), lemma 5.
    """
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon}")
    return _delta(loss, compose(loss), epsilon)


def epsilon_at(loss: PrivacyLoss, delta: float) -> float:
    """Upper bound on the smallest epsilon >= 0 for which all copies together are (epsilon, delta) private.

    Bisection keeps an upper end whose bound on delta is at most the given delta, and stops when the interval
    is shorter than 2^-50 of the largest loss.

    Parameters
    ----------
    loss : PrivacyLoss.
    delta : in (0, 1).

    Returns
    -------
    epsilon, nats, at most the largest loss.

    Raises
    ------
    ValueError if delta is out of range.
    """
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta}")
    composed = compose(loss)
    if _delta(loss, composed, 0.0) <= delta:
        return 0.0
    low, high = 0.0, loss.largest
    while high - low > loss.largest * 2**-50:
        middle = (low + high) / 2
        if _delta(loss, composed, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def compose(loss: PrivacyLoss) -> PrivacyLoss:
    """Return the loss of all copies together as one output: its masses convolved with themselves.

    All terms are positive, so every mass, however small, has a relative error of at most `_rounding`; an FFT
    would only bound the absolute error.

    Parameters
    ----------
    loss : PrivacyLoss of n copies of m atoms.

    Returns
    -------
    PrivacyLoss of 1 copy of at most n (m - 1) + 1 atoms.
    """
    mass, first = np.ones(1), 0
    power, power_first = loss.mass, loss.first
    copies = loss.copies
    while copies:
        if copies & 1:
            mass, first = _trimmed(np.convolve(mass, power), first + power_first)
        copies >>= 1
        if copies:
            power, power_first = _trimmed(np.convolve(power, power), 2 * power_first)
    return PrivacyLoss(loss.step, first, mass, loss.largest)


def _trimmed(mass: FloatArray, first: int) -> tuple[FloatArray, int]:
    kept = np.flatnonzero(mass > SMALLEST)
    return mass[kept[0] : kept[-1] + 1], first + int(kept[0])


def _delta(loss: PrivacyLoss, composed: PrivacyLoss, epsilon: float) -> float:
    lowered = epsilon - loss.largest * 2**-50
    beyond = np.maximum(composed.losses - lowered, 0)
    exceeding = float(composed.mass @ -np.expm1(-beyond))
    return min(exceeding * (1 + _rounding(loss)) + LOST, 1.0)


def _rounding(loss: PrivacyLoss) -> float:
    """Bound the relative error of the masses of n copies of m atoms, and of a sum over them.

    A sum of s products of positive numbers has a relative error of at most s units. Convolving a copies with
    b sums at most (m - 1) min(a, b) + 1 products, and min(a, b) adds up to at most n log2(n) / 2 over all
    convolutions. Each copy adds the rounding of its own masses. The final sum over at most n (m - 1) + 1
    atoms is counted as if it were sequential. Its terms and its use add less than 16 units.
    """
    atoms, copies = len(loss.mass), loss.copies
    units = (atoms - 1) * copies * (math.log2(copies) / 2 + 1) + 4 * copies + 16
    return 1.01 * units * UNIT
