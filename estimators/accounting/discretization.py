"""Discretization of a privacy loss distribution to a lattice, with all figures rounded up.

Source: Doroshenko et al., "Connect the dots: tighter discrete approximations of privacy loss distributions"
(PoPETs 2022).
"""

import math

import numpy as np

from deniable.estimators.accounting.privacy_loss import PrivacyLoss
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT

#: Outputs rarer than this may be left out, because their masses may underflow.
RAREST = 1e-307
# Upper bound on their total mass: there are fewer than 10^9 of them.
_LOST = 1e-298


def spread(losses: FloatArray, mass: FloatArray, lowest: float, highest: float, steps: int) -> FloatArray:
    """Split every atom between its two neighbours on a lattice, preserving its mass under P and under Q.

    An atom with loss L and mass a becomes (1 - w) a at the lattice loss below and w a at the one above, with
    w such that the mass under Q, a exp(-L), is preserved. The original output is a post-processing of the
    split one (forget which neighbour it was), so delta at every epsilon, every Rényi divergence and rho of
    the lattice distribution are upper bounds. No loss rises by a full step, so epsilon at a delta rises by
    less than a step per output; since E[exp(-L)] is preserved, the rise is quadratic in the step where delta
    comes from many atoms.

    Each of these figures is a sum over outputs y of P(y) times a non-decreasing function of L(y). So it is an
    upper bound if no loss and no mass is rounded down: distances and masses are raised by their rounding.

    Parameters
    ----------
    losses : float64 array (m,), nats, upper bounds; one above highest counts as highest.
    mass : float64 array (m,), upper bounds on probabilities under P.
    lowest, highest : ends of the lattice, nats.
    steps : number of lattice steps between them, >= 1.

    Returns
    -------
    float64 array (steps + 1,), masses under P at lowest, lowest + step, ..., highest.

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
    """Build the loss of dependent reports from lattice masses; underflowed mass counts at the largest loss.

    All figures remain upper bounds, but the Rényi divergence has a floor,
    D_alpha >= largest - 686 / (alpha - 1). With the many reports at which masses underflow, rdp and zcdp may
    be far above the exact value; epsilon from the distribution itself is not affected.

    Parameters
    ----------
    mass : float64 array (2 m + 1,), upper bounds on the masses of the losses from -largest to largest;
        changed in place.
    largest : largest loss, nats.
    limit : another upper bound on the loss of one copy, nats.
    copies : number of independent outputs, >= 1.
    """
    half = len(mass) // 2
    mass[-1] += _LOST
    mass[0] += _LOST * math.exp(-largest)
    return PrivacyLoss(largest / half, -half, mass, min(math.nextafter(largest, math.inf), limit), copies)
