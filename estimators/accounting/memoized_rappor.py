"""RAPPOR reports that share one permanent response: their exact joint privacy loss."""

import math
from fractions import Fraction

import numpy as np

from estimators.accounting.discretization import joint_loss, spread
from estimators.accounting.privacy_loss import PrivacyLoss, bits_loss
from estimators.arrays import FloatArray
from estimators.mechanisms.directed_rounding import UNIT, log_above
from estimators.mechanisms.rappor_bits import WORDS, TwoStepBits

# Lattice steps from no loss to the largest of all bits together, and of one bit each way at least.
STEPS = 1 << 13
LEAST_STEPS = 1 << 8


def shared_bits_loss(mechanism: TwoStepBits, reports: int) -> PrivacyLoss:
    """Loss of several reports made from one permanent response, all together.

    Given the permanent response, bits and reports are independent, so what n reports tell of a true bit is
    in how many of them show a 1: a binomial count, of rate q or p as the permanent bit is 1 or 0, which it is
    by chance f/2 against the true bit. With j ones, the permanent bit has the odds exp(d),
    d = j ln(q / p) + (n - j) ln((1 - q) / (1 - p)), and the true bit

        L = ln(((1 - f/2) exp(d) + f/2) / (f/2 exp(d) + 1 - f/2)),

    never beyond ln((1 - f/2) / (f/2)). Each L is spread onto a lattice (see `spread`); two values differ in
    at most `ones` bits each way, and the 2 ones losses add. Epsilon is above the truth by less than a
    relative 2 / max(2^13 / ones, 2^8) of the largest loss, in tests by less than 1e-4. Losses and masses are
    raised by what they may round, up to 1e-9 at 10,000 reports.

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
    """L of j = 0 to n ones, and how much it may be off, float64 (n + 1,) each.

    L(-d) = -L(d), and for d >= 0 it is ln(1 + (1 - f) (1 - exp(-d)) / (f/2 + (1 - f/2) exp(-d))): no step
    cancels but the difference d, whose error reaches L with a factor below 1.
    """
    shown = np.arange(reports + 1)
    ones, zeros = shown * math.log1p((q - p) / p), shown[::-1] * math.log1p((q - p) / (1 - q))
    odds = np.abs(ones - zeros)
    excess = (1 - 2 * flip) * -np.expm1(-odds) / (flip + (1 - flip) * np.exp(-odds))
    losses = np.copysign(np.log1p(excess), ones - zeros)
    return losses, 32 * UNIT * (ones + zeros + np.abs(losses))


def _binomial(trials: int, rate: float) -> FloatArray:
    """P(j successes), float64 (trials + 1,), not too low: its logarithm is raised by what it may round."""
    successes = np.arange(trials + 1)
    log_factorials = np.array([math.lgamma(count + 1) for count in range(trials + 1)])
    ways, orders = log_factorials[-1], log_factorials + log_factorials[::-1]
    chances = -successes * math.log(rate) - successes[::-1] * math.log1p(-rate)
    mass: FloatArray = np.exp(ways - orders - chances + 16 * UNIT * (ways + orders + chances))
    return mass
