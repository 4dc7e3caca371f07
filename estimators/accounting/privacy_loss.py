"""The exact privacy loss distribution of one report, for every mechanism."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from estimators.arrays import FloatArray
from estimators.mechanisms.directed_rounding import log_above
from estimators.mechanisms.krr import KRR, WORDS, commonest, rarest
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.rappor_bits import WORDS as BIT_WORDS
from estimators.mechanisms.rappor_bits import TwoStepBits


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """Distribution of L(y) = ln(P(y) / Q(y)), y drawn from P, for a worst-case pair of true values.

    P is the distribution of the output under one true value, Q under the other. All losses are multiples of
    `step`. A client releases `copies` independent outputs, whose losses add. Swapping P and Q gives the same
    distribution for every mechanism here, so one direction suffices.

    Parameters
    ----------
    step : distance between neighbouring losses, nats, > 0.
    first : integer; the loss of mass[i] is (first + i) step.
    mass : float64 array (m,), probabilities under P.
    largest_of_one : upper bound on the loss of one copy, nats, at most (first + m - 1) step.
    copies : number of independent outputs, >= 1.
    """

    step: float
    first: int
    mass: FloatArray
    largest_of_one: float
    copies: int = 1

    @classmethod
    def of_three_atoms(cls, up: Fraction, down: Fraction, copies: int = 1) -> Self:
        """Build the loss of an output with likelihood ratio up/down, down/up or 1.

        Parameters
        ----------
        up : probability under P of the ratio up/down, in (0, 1).
        down : probability under P of the ratio down/up, in (0, up), up + down <= 1.
        copies : number of independent outputs, >= 1.
        """
        step = log_above(up / down)
        return cls(step, -1, np.array([float(down), float(1 - up - down), float(up)]), step, copies)

    @cached_property
    def losses(self) -> FloatArray:
        """Loss of each mass, nats, ascending, float64 (m,)."""
        return self.step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)

    @property
    def largest(self) -> float:
        """Largest loss of all copies together, nats, rounded up: the epsilon of pure differential privacy."""
        product = self.copies * self.largest_of_one
        exact = self.copies * Fraction(self.largest_of_one)
        return product if Fraction(product) >= exact else math.nextafter(product, math.inf)

    def times(self, reports: int) -> Self:
        """Return the joint loss of this many (>= 1) independent reports of `copies` outputs each."""
        return replace(self, copies=self.copies * reports)


def krr_loss(mechanism: KRR) -> PrivacyLoss:
    """Return the loss of one k-RR report: ln(p / q), -ln(p / q) or 0.

    Multiply-shift makes some of the other values rarer. `_symmetric` bounds the effect, which raises losses
    by less than k^2 2^-63: 1e-7 at k = 10^6, but no longer negligible near k = 2^31.

    Parameters
    ----------
    mechanism : KRR.

    Source: Mironov, "Rényi differential privacy" (CSF 2017), proposition 5, for k = 2.
    """
    loss = _symmetric(mechanism.k, _rarest_lie(mechanism), _largest_column(mechanism))
    return replace(loss, largest_of_one=mechanism.epsilon)


def longitudinal_loss(mechanism: LongitudinalKRR) -> PrivacyLoss:
    """Return the loss of one longitudinal k-RR report with a fresh permanent response.

    P(w | v) is at least p1 r2 + r1 p2 + (k - 2) r1 r2, where r1 and r2 are the steps' smallest probabilities
    of another value. The column sums of a product of matrices are at most the product of their largest ones.

    Parameters
    ----------
    mechanism : LongitudinalKRR.

    Source: Mironov, "Rényi differential privacy" (CSF 2017), proposition 5, for the composed channel.
    """
    k, first, second = mechanism.k, mechanism.permanent, mechanism.instantaneous
    (p1, r1), (p2, r2) = ((Fraction(step.threshold, WORDS), _rarest_lie(step)) for step in (first, second))
    smallest = p1 * r2 + r1 * p2 + (k - 2) * r1 * r2
    loss = _symmetric(k, smallest, _largest_column(first) * _largest_column(second))
    return replace(loss, largest_of_one=mechanism.epsilon_one)


def bits_loss(mechanism: TwoStepBits) -> PrivacyLoss:
    """Return the loss of one RAPPOR report with a fresh permanent response.

    Each of two true values sets at most `ones` bits that the other does not. Fewer differing bits mean no
    greater loss, because dropping bits from a report is post-processing. Pair one bit that only P's value
    sets with one that only Q's value sets. If both point to P, which reports 1 and 0, the likelihood ratio is
    q* (1 - p*) / (p* (1 - q*)); if both point to Q it is the inverse; otherwise the two cancel exactly. A
    report consists of `ones` such independent pairs.

    Parameters
    ----------
    mechanism : Rappor or HotRappor. With fewer than 2 `ones` bits in a report, the loss is an upper bound.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), theorem 2; the symmetric case: "Tight RDP and
    zCDP bounds for RAPPOR", theorems 1 and 6.
    """
    flip, p, q = (
        Fraction(threshold, BIT_WORDS)
        for threshold in (mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold)
    )
    p_star, q_star = p + (q - p) * flip, q - (q - p) * flip
    return PrivacyLoss.of_three_atoms(q_star * (1 - p_star), p_star * (1 - q_star), mechanism.ones)


def _symmetric(k: int, smallest: Fraction, largest_column: Fraction) -> PrivacyLoss:
    """Return the loss of a symmetric channel that dominates a nearly symmetric one.

    Let M be a channel with M(w|v) >= r and sum_v M(w|v) <= c, and S the k-RR channel with q = r/c and
    p = 1 - (k - 1) q. Then K(w|v) = (M(w|v) - q sum_u M(w|u)) / (p - q) is >= 0 and sums over w to 1, so K is
    a channel, and M is K applied to the output of S: post-processing, so the loss of S is an upper bound.
    """
    lie = smallest / largest_column
    return PrivacyLoss.of_three_atoms(1 - (k - 1) * lie, lie)


def _rarest_lie(mechanism: KRR) -> Fraction:
    return (1 - Fraction(mechanism.threshold, WORDS)) * Fraction(rarest(mechanism.k), WORDS)


def _largest_column(mechanism: KRR) -> Fraction:
    """Upper bound on sum_v P(report w | truth v), over all w."""
    truth = Fraction(mechanism.threshold, WORDS)
    return truth + (1 - truth) * (mechanism.k - 1) * Fraction(commonest(mechanism.k), WORDS)
