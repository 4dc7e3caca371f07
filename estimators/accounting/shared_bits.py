"""RAPPOR reports that share one permanent response: their exact joint privacy loss."""

import math
from fractions import Fraction

import numpy as np

from estimators.accounting.loss_spread import joint_loss, spread
from estimators.accounting.privacy_loss import PrivacyLoss, bits_loss
from estimators.estimate import FloatArray
from estimators.logarithm import log_above
from estimators.two_step import WORDS, TwoStepBits

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
    relative 2 / max(2^13 / ones, 2^8) of the largest loss, in tests by less than 1e-4; rounding is below
    1e-9.

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
    shown = np.arange(reports + 1)
    odds = shown * math.log(q / p) + (reports - shown) * math.log((1 - q) / (1 - p))
    kept, flipped = math.log1p(-flip), math.log(flip)
    losses = np.logaddexp(kept + odds, flipped) - np.logaddexp(flipped + odds, kept)
    one, zero = _binomial(reports, q), _binomial(reports, p)
    if_one, if_zero = (1 - flip) * one + flip * zero, flip * one + (1 - flip) * zero
    lowest, highest = float(losses[0]), float(losses[-1])
    steps = max(STEPS // mechanism.ones, LEAST_STEPS)
    forward = spread(losses, if_one, lowest, highest, steps)
    backward = spread(-losses, if_zero, -highest, -lowest, steps)
    limit = log_above(Fraction(WORDS - mechanism.flip_threshold, mechanism.flip_threshold) ** 2)
    return joint_loss(np.convolve(forward, backward), highest - lowest, limit, mechanism.ones)


def _binomial(trials: int, rate: float) -> FloatArray:
    """P(j successes), float64 (trials + 1,)."""
    successes = np.arange(trials + 1)
    log_factorials = np.array([math.lgamma(count + 1) for count in range(trials + 1)])
    log_ways = log_factorials[-1] - log_factorials - log_factorials[::-1]
    mass: FloatArray = np.exp(log_ways + successes * math.log(rate) + successes[::-1] * math.log1p(-rate))
    return mass
