"""The exact distribution of the privacy loss of one report, of any mechanism."""

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
    """Distribution of ln(P(y) / Q(y)), y drawn from P, for the two true values that are told apart best.

    P is the law of what leaves under one true value, Q under the other. All losses lie on a lattice. What
    leaves are `copies` independent outputs of this distribution; their losses add. Swapping P and Q gives the
    same distribution for every mechanism here, so that one direction speaks for both.

    Parameters
    ----------
    step : distance between neighbouring losses, nats, > 0.
    first : the loss of mass[i] is (first + i) step.
    mass : float64 array (m,), probabilities under P.
    largest_of_one : bound of the loss of one copy, nats: (first + m - 1) step, or what is known to be less.
    copies : number of independent outputs, >= 1.
    """

    step: float
    first: int
    mass: FloatArray
    largest_of_one: float
    copies: int = 1

    @classmethod
    def of_three_atoms(cls, up: Fraction, down: Fraction, copies: int = 1) -> Self:
        """Build the loss of an output that says `up` : `down` for, as much against, or nothing.

        Parameters
        ----------
        up : P(output for P), in (0, 1).
        down : P(output against P), in (0, up), up + down <= 1.
        copies : number of independent outputs, >= 1.
        """
        step = log_above(up / down)
        return cls(step, -1, np.array([float(down), float(1 - up - down), float(up)]), step, copies)

    @cached_property
    def losses(self) -> FloatArray:
        """The loss that belongs to each mass, nats, ascending, float64 (m,)."""
        return self.step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)

    @property
    def largest(self) -> float:
        """Largest loss of all copies together, rounded up: the epsilon of pure differential privacy."""
        product = self.copies * self.largest_of_one
        exact = self.copies * Fraction(self.largest_of_one)
        return product if Fraction(product) >= exact else math.nextafter(product, math.inf)

    def times(self, reports: int) -> Self:
        """Loss of this many independent reports, >= 1, together, each of them `copies` outputs."""
        return replace(self, copies=self.copies * reports)


def krr_loss(mechanism: KRR) -> PrivacyLoss:
    """Loss of one k-RR report: p : q for, as much against, or nothing.

    Multiply-shift makes some lies rarer than others. `_symmetric` bounds that, which raises losses by less
    than k^2 2^-63: 1e-7 at k = 10^6, too much to be called exact near k = 2^31.

    Parameters
    ----------
    mechanism : KRR.

    Source: Mironov, "Rényi differential privacy" (CSF 2017), proposition 5, for k = 2.
    """
    loss = _symmetric(mechanism.k, _rarest_lie(mechanism), _largest_column(mechanism))
    return replace(loss, largest_of_one=mechanism.epsilon)


def longitudinal_loss(mechanism: LongitudinalKRR) -> PrivacyLoss:
    """Loss of one longitudinal k-RR report whose permanent response is fresh.

    A report w comes of a true value v by both steps: smallest where one is the truth and the other the rarest
    lie, or both are lies; the columns of a product sum to at most the product of what those of each do.

    Parameters
    ----------
    mechanism : LongitudinalKRR.

    Source: as of `krr_loss`, of the symmetric channel that both steps are together.
    """
    k, first, second = mechanism.k, mechanism.permanent, mechanism.instantaneous
    (p1, r1), (p2, r2) = ((Fraction(step.threshold, WORDS), _rarest_lie(step)) for step in (first, second))
    smallest = p1 * r2 + r1 * p2 + (k - 2) * r1 * r2
    loss = _symmetric(k, smallest, _largest_column(first) * _largest_column(second))
    return replace(loss, largest_of_one=mechanism.epsilon_one)


def bits_loss(mechanism: TwoStepBits) -> PrivacyLoss:
    """Loss of one RAPPOR report whose permanent response is fresh.

    Two true values differ in at most `mechanism.ones` bits each way; pairs that differ in fewer show less,
    since leaving bits out of a report is post-processing. Of one bit each way, the first shows 1 against 0
    under P and the second 0 against 1, so that both for P have the odds q* (1 - p*) : p* (1 - q*), one for
    and one against cancel exactly, and a report is `mechanism.ones` such outputs.

    Parameters
    ----------
    mechanism : Rappor or HotRappor. Where its report has fewer than 2 `ones` bits, the loss is an upper
        bound.

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
    """Loss of a symmetric channel that dominates a nearly symmetric one.

    Let M be a channel with entries M(w|v) >= r and columns sum_v M(w|v) <= c, and S the k-RR channel with
    q = r/c and p = 1 - (k - 1) q. Then K(w|v) = (M(w|v) - q sum_u M(w|u)) / (p - q) has entries >= 0 and
    sums over w to 1, and K after S is M: whoever sees a report of M sees a randomized report of S.
    """
    lie = smallest / largest_column
    return PrivacyLoss.of_three_atoms(1 - (k - 1) * lie, lie)


def _rarest_lie(mechanism: KRR) -> Fraction:
    return (1 - Fraction(mechanism.threshold, WORDS)) * Fraction(rarest(mechanism.k), WORDS)


def _largest_column(mechanism: KRR) -> Fraction:
    """Bound of sum_v P(report w | truth v) over all w."""
    truth = Fraction(mechanism.threshold, WORDS)
    return truth + (1 - truth) * (mechanism.k - 1) * Fraction(commonest(mechanism.k), WORDS)
