"""Epsilon of several reports of one client, each shuffled among other reports, by the exact accountant."""

import math

import numpy as np

from deniable.estimators.accounting.composition import epsilon_at
from deniable.estimators.accounting.privacy_loss import PrivacyLoss
from deniable.estimators.accounting.shuffling.amplification import (
    least_epsilon,
    mean_positive_part,
    shuffled_epsilon,
)
from deniable.estimators.accounting.shuffling.blanket import Blanket
from deniable.estimators.accounting.shuffling.positive_part import SearchWork
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT

#: Steps of the lattice from 0 to the largest loss that is not left out, and the share of delta for the rest.
STEPS = 128
SHARE = 1 / 64
MOST_WINDOWS = 10_000


def windows_epsilon(blanket: Blanket, reports: int, delta: float, windows: int) -> float:
    """Bound epsilon at a delta of w reports of one client, each one of n shuffled reports of its window.

    The blanket's delta at every epsilon is that of two distributions, those of what the observer sees if it
    is told who did not report from the blanket. The windows are independent, so their losses add. A convex
    curve above delta, linear in e^epsilon between the steps of a lattice, is the curve of a loss on that
    lattice; what is beyond its end counts as lost, and is added to delta for each window.

    Parameters
    ----------
    blanket : of the randomizer of all reports.
    reports : n of each window, the least of them, in [1, 10^12].
    delta : of all windows together, in [1e-90, 1).
    windows : w, in [1, 10,000].

    Returns
    -------
    Nats, at most that of w reports that were not shuffled.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: Zhu, Dong, Wang, "Optimal accounting of differential privacy via characteristic function" (AISTATS
    2022), for pairs that dominate; Doroshenko et al., "Connect the dots" (PoPETs 2022), for the lattice.
    """
    if not 1 <= windows <= MOST_WINDOWS:
        raise ValueError(f"windows must be in [1, {MOST_WINDOWS}], got {windows}")
    if windows == 1:
        return shuffled_epsilon(blanket, reports, delta).high
    unshuffled = windows * blanket.epsilon * (1 + 4 * UNIT)
    rest = delta * SHARE / windows
    end = least_epsilon(blanket.atoms, reports, rest, blanket.epsilon).high
    if end == 0:
        return 0.0
    work = SearchWork()
    epsilons = end / STEPS * np.arange(STEPS + 1)
    deltas = [
        mean_positive_part(blanket.atoms, reports, epsilon, rest / STEPS, work=work).high
        for epsilon in epsilons.tolist()
    ]
    loss, lost = _lattice_loss(end, np.minimum.accumulate(np.array(deltas)))
    return min(epsilon_at(loss.times(windows), delta - windows * lost), unshuffled)


def _lattice_loss(end: float, deltas: FloatArray) -> tuple[PrivacyLoss, float]:
    """Return a loss on a lattice from -end to end, and the probability of a larger one.

    Parameters
    ----------
    end : nats, > 0.
    deltas : float64 (m + 1,), upper bounds on delta at 0, end / m, …, end.
    """
    steps = len(deltas) - 1
    step = end / steps
    # Points and slopes in x = e^epsilon; the lower convex hull is still above the true, convex curve.
    kept = _convex_hull(np.exp(step * np.arange(steps + 1)), deltas)
    x = np.exp(step * kept)
    slopes = np.diff(deltas[kept]) / (x[:-1] * np.expm1(step * np.diff(kept)))
    bends = np.diff(slopes, append=0.0)  # at kept[1:]: the probability of this loss under Q
    under_q = np.maximum(bends, 0) + 64 * UNIT * np.abs(slopes)
    under_p = under_q * x[1:] * (1 + 8 * UNIT)
    mass = np.zeros(2 * steps + 1)
    mass[steps + kept[1:]], mass[steps - kept[1:]] = under_p, under_q
    mass[steps] = max(1 - float(mass.sum()), 0.0) + 64 * UNIT
    return PrivacyLoss(step, -steps, mass, math.nextafter(steps * step, math.inf)), float(deltas[-1])


def _convex_hull(x: FloatArray, y: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the places of the points on the lower convex hull; the first and the last one are among them."""
    kept: list[int] = []
    for place in range(len(x)):
        while len(kept) > 1:
            first, second = kept[-2:]
            rise = (y[second] - y[first]) * (x[place] - x[first])
            if rise < (y[place] - y[first]) * (x[second] - x[first]):
                break
            kept.pop()
        kept.append(place)
    return np.array(kept, np.int64)
