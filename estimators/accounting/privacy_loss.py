"""The exact privacy loss distribution of one report, for every mechanism."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np

from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import log_above, product_above
from deniable.estimators.mechanisms.krr import KRR, WORDS, commonest, rarest
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor_bits import WORDS as BIT_WORDS
from deniable.estimators.mechanisms.rappor_bits import TwoStepBits
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.traits import ReportAtom


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

    @classmethod
    def of_reports(cls, atoms: Iterable[ReportAtom]) -> Self:
        """Build the loss of one report of ratios e^epsilon, its inverse and 1, see `Traits.report_atoms`."""
        up = sum((each.first * each.mass for each in atoms if each.first > each.second), Fraction())
        down = sum((each.first * each.mass for each in atoms if each.first < each.second), Fraction())
        return cls.of_three_atoms(up, down)

    @cached_property
    def losses(self) -> FloatArray:
        """Loss of each mass, nats, ascending, float64 (m,)."""
        return self.step * np.arange(self.first, self.first + len(self.mass), dtype=np.float64)

    @property
    def largest(self) -> float:
        """Largest loss of all copies together, nats, rounded up: the epsilon of pure differential privacy."""
        return product_above(self.copies, self.largest_of_one)

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
    return replace(PrivacyLoss.of_three_atoms(*krr_atoms(mechanism)), largest_of_one=mechanism.epsilon)


def krr_atoms(mechanism: KRR) -> tuple[Fraction, Fraction]:
    """Return p and q of the symmetric k-RR of which this one is a post-processing: see `_symmetric`.

    Parameters
    ----------
    mechanism : KRR.
    """
    return _atoms(mechanism.k, _rarest_lie(mechanism), _largest_column(mechanism))


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


def pair_loss(mechanism: PairKRR) -> PrivacyLoss:
    """Return the loss of one report of a pair, of two true pairs that differ in both fields.

    The losses of both fields add. They are multiples of one step, the larger of both: three atoms with the
    difference d = up - down and the ratio r = up / down have delta(epsilon) = (up - e^epsilon down)_+, a line
    in e^epsilon from d at 1 to 0 at r. So three atoms with the same d and a larger r have no smaller delta at
    any epsilon, and are an upper bound: an exact one if both fields have the same epsilon.

    Parameters
    ----------
    mechanism : PairKRR.

    Source: Kairouz, Oh, Viswanath, "The composition theorem for differential privacy" (ICML 2015), section 2,
    for domination by delta at every epsilon.
    """
    atoms = [krr_atoms(field) for field in mechanism.fields]
    ratio = max(up / down for up, down in atoms)
    (up, down), (other_up, other_down) = (
        ((one - other) * ratio / (ratio - 1), (one - other) / (ratio - 1)) for one, other in atoms
    )
    rest, other_rest = 1 - up - down, 1 - other_up - other_down
    mass = [
        down * other_down,
        down * other_rest + rest * other_down,
        up * other_down + rest * other_rest + down * other_up,
        up * other_rest + rest * other_up,
        up * other_up,
    ]
    return PrivacyLoss(log_above(ratio), -2, np.array([float(each) for each in mass]), mechanism.epsilon)


def square_wave_loss(mechanism: SquareWave) -> PrivacyLoss:
    """Return the loss of one Square Wave report, of the two numbers that are farthest apart.

    Let a be the probability of the commonest near cell, r that of the rarest far one. At most
    m = min(2b + 1, d - 1) cells are near one number and far from the other. Each adds at most
    (a - e^epsilon r)_+ to delta at any epsilon >= 0, so delta is largest with all m of them, and three atoms
    with ratios a / r, 1 and r / a have at least as much. Cells near both or near none differ by at most 2^-64
    each, which counts only below an epsilon of 2^-50, and which `slack` exceeds there.

    Parameters
    ----------
    mechanism : SquareWave.

    Source: Li et al. (SIGMOD 2020), section 5.1, for the two probabilities.
    """
    is_near = Fraction(mechanism.threshold, WORDS)
    common = is_near * Fraction(-(-WORDS // mechanism.near), WORDS)
    rare = (1 - is_near) * Fraction(WORDS // mechanism.far, WORDS)
    slack = Fraction(2 * mechanism.width, WORDS) / (1 - rare / common)
    # No pair loses more than binary randomized response with this ratio: the cap.
    up = min(min(mechanism.near, mechanism.far) * common + slack, common / (common + rare))
    loss = PrivacyLoss.of_three_atoms(up, up * rare / common)
    return replace(loss, largest_of_one=mechanism.epsilon)


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
    return PrivacyLoss.of_three_atoms(*_atoms(k, smallest, largest_column))


def _atoms(k: int, smallest: Fraction, largest_column: Fraction) -> tuple[Fraction, Fraction]:
    """Return p and q of the channel S of `_symmetric`."""
    lie = smallest / largest_column
    return 1 - (k - 1) * lie, lie


def _rarest_lie(mechanism: KRR) -> Fraction:
    return (1 - Fraction(mechanism.threshold, WORDS)) * Fraction(rarest(mechanism.k), WORDS)


def _largest_column(mechanism: KRR) -> Fraction:
    """Upper bound on sum_v P(report w | truth v), over all w."""
    truth = Fraction(mechanism.threshold, WORDS)
    return truth + (1 - truth) * (mechanism.k - 1) * Fraction(commonest(mechanism.k), WORDS)
