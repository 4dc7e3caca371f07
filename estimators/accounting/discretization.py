"""Any distribution of privacy losses on a lattice, never below the truth."""

import math

import numpy as np

from estimators.accounting.privacy_loss import PrivacyLoss
from estimators.arrays import FloatArray
from estimators.mechanisms.directed_rounding import UNIT

#: Outputs rarer than this may be left out, and their masses be no floats.
RAREST = 1e-307
# What all of them have together at most: there are fewer than 10^9.
_LOST = 1e-298


def spread(losses: FloatArray, mass: FloatArray, lowest: float, highest: float, steps: int) -> FloatArray:
    """Split every atom between its two neighbours on a lattice, keeping its mass under P and under Q.

    An atom with loss L and mass a becomes (1 - w) a at the lattice loss below and w a at the one above, with
    w so that the mass under Q, a exp(-L), stays. Whoever sees the split output and forgets which neighbour it
    was has the true output: so the lattice losses bound delta at every epsilon, every Rényi divergence and
    rho from above. No loss rises by a step, so epsilon at a delta rises by less than a step for each output;
    since the mean of exp(-L) stays, the rise is quadratic in the step where many atoms make up delta.

    Every figure is a sum over outputs of P(y) times something that does not fall as L rises, so it is from
    above when no loss and no mass is too low: distances are raised by their rounding, and masses by theirs.

    Parameters
    ----------
    losses : float64 array (m,), nats, none too low; one above highest counts as highest.
    mass : float64 array (m,), probabilities under P, none too low.
    lowest, highest : ends of the lattice, nats.
    steps : steps from one end to the other, >= 1.

    Returns
    -------
    float64 array (steps + 1,), masses under P at lowest, lowest + step and so on.

    Source: Doroshenko et al., "Connect the dots: tighter discrete approximations of privacy loss
    distributions" (PoPETs 2022).
    """
    step = (highest - lowest) / steps
    distance = np.clip((losses - lowest) / step * (1 + 8 * UNIT), 0, steps)
    below = np.minimum(distance.astype(np.int64), steps - 1)
    share = np.minimum(np.expm1(-step * (distance - below)) / math.expm1(-step), 1)
    lower = np.bincount(below, mass * (1 - share), steps + 1).astype(np.float64)
    found = lower + np.bincount(below + 1, mass * share, steps + 1)
    return found * (1 + (len(losses) + 32) * UNIT)


def joint_loss(mass: FloatArray, largest: float, limit: float, copies: int = 1) -> PrivacyLoss:
    """Loss of reports that depend on each other; masses too small for a float count at the largest loss.

    So the figures stay bounds, but the Rényi divergence has a floor, D_alpha >= largest - 686 / (alpha - 1):
    of the many reports that are needed for such masses, rdp and zcdp may say far more than is true. Epsilon
    from the distribution itself does not change.

    Parameters
    ----------
    mass : float64 array (2 m + 1,), of the losses from -largest to largest, none too low; changed in place.
    largest : the last loss, nats.
    limit : bound of the loss of one copy that is known beforehand, nats.
    copies : as of PrivacyLoss.
    """
    half = len(mass) // 2
    mass[-1] += _LOST
    mass[0] += _LOST * math.exp(-largest)
    return PrivacyLoss(largest / half, -half, mass, min(math.nextafter(largest, math.inf), limit), copies)
