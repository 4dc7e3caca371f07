"""Joint privacy loss of RAPPOR reports that share one permanent response."""

import math
from fractions import Fraction

import numpy as np

from deniable.estimators.accounting.discretization import joint_loss, spread
from deniable.estimators.accounting.privacy_loss import PrivacyLoss, bits_loss
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT, log_above
from deniable.estimators.mechanisms.rappor_bits import WORDS, TwoStepBits

# Lattice steps from loss 0 to the largest loss: of all bits together, and at least of one bit each way.
STEPS = 1 << 13
LEAST_STEPS = 1 << 8


def shared_bits_loss(mechanism: TwoStepBits, reports: int) -> PrivacyLoss:
    """Return the joint loss of several reports from one permanent response.

    Given the permanent response, bits and reports are independent. So the number j of the n reports that show
    a 1 is sufficient for a bit: Bin(n, q) if the permanent bit is 1, Bin(n, p) if it is 0, and the permanent
    bit differs from the true one with probability f/2. The likelihood ratio of the permanent bit is exp(d),
    d = j ln(q / p) + (n - j) ln((1 - q) / (1 - p)), and the privacy loss of the true bit is

        L = ln(((1 - f/2) exp(d) + f/2) / (f/2 exp(d) + 1 - f/2)) <= ln((1 - f/2) / (f/2)).

    Each L is discretized (see `spread`). Two values differ in at most `ones` bits each way, so 2 `ones` such
    losses add up. Epsilon is raised by less than 2 / max(2^13 / ones, 2^8) of the largest loss, in tests by
    less than 1e-4. Losses and masses are raised by their rounding, up to 1e-9 at 10,000 reports.

    Parameters
    ----------
    mechanism : Rappor or HotRappor.
    reports : n, >= 1.

    Returns
    -------
    PrivacyLoss of all reports together: that of one bit each way, in `ones` copies.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), section 3 and theorem 1, which is the limit of
    many reports.
    """
    if mechanism.flip_threshold == 0:
        return bits_loss(mechanism).times(reports)
    flip, p, q = (
        threshold / WORDS
        for threshold in (mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold)
    )
    losses, rounding = _losses(reports, flip, p, q)
    one, zero = _binomial(reports, q), _binomial(reports, p)
    if_one, if_zero = (1 - flip) * one + flip * zero, flip * one + (1 - flip) * zero
    for_one, for_zero = losses + rounding, rounding - losses
    lowest, highest = -float(for_zero.max()), float(for_one.max())
    steps = max(STEPS // mechanism.ones, LEAST_STEPS)
    forward = spread(for_one, if_one, lowest, highest, steps)
    backward = spread(for_zero, if_zero, -highest, -lowest, steps)
    limit = log_above(Fraction(WORDS - mechanism.flip_threshold, mechanism.flip_threshold) ** 2)
    mass = np.convolve(forward, backward) * (1 + (steps + 64) * UNIT)  # each a sum of steps + 1 products
    return joint_loss(mass, highest - lowest, limit, mechanism.ones)


def _losses(reports: int, flip: float, p: float, q: float) -> tuple[FloatArray, FloatArray]:
    """L for j = 0 to n ones, and a bound on its rounding error, float64 (n + 1,) each.

    L(-d) = -L(d), and L(d) = ln(1 + (1 - f) (1 - exp(-d)) / (f/2 + (1 - f/2) exp(-d))) for d >= 0. Only the
    difference d cancels, and its error enters L with a factor below 1.
    """
    shown = np.arange(reports + 1)
    ones, zeros = shown * math.log1p((q - p) / p), shown[::-1] * math.log1p((q - p) / (1 - q))
    odds = np.abs(ones - zeros)
    excess = (1 - 2 * flip) * -np.expm1(-odds) / (flip + (1 - flip) * np.exp(-odds))
    losses = np.copysign(np.log1p(excess), ones - zeros)
    return losses, 32 * UNIT * (ones + zeros + np.abs(losses))


def _binomial(trials: int, rate: float) -> FloatArray:
    """Upper bound on P(j successes), float64 (trials + 1,): its logarithm is raised by its rounding."""
    successes = np.arange(trials + 1)
    log_factorials = np.array([math.lgamma(count + 1) for count in range(trials + 1)])
    ways, orders = log_factorials[-1], log_factorials + log_factorials[::-1]
    chances = -successes * math.log(rate) - successes[::-1] * math.log1p(-rate)
    mass: FloatArray = np.exp(ways - orders - chances + 16 * UNIT * (ways + orders + chances))
    return mass
