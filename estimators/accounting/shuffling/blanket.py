"""The privacy blanket: what every report shows of its true value, and what hides one report among others.

A randomizer R with R(w | x) >= c(w) for all true values x reports from the blanket c with probability
sum c, whatever its true value is. Whoever sees n shuffled reports, and is told in addition who did not report
from the blanket and what they reported, still cannot tell the one report in question from those that did. So

    delta(epsilon) = E[(X_1 + … + X_n)_+] / n,   X = (R(W | x) - e^epsilon R(W | x')) / c(W)

with probability c(w) for W = w, else 0, bounds what the shuffled reports show of whether that report's true
value is x or x', whatever all other true values are. All n reports must be independent draws of the same R.

The bound is largest for the pair with the largest X in convex order, which for every mechanism here is one
pair: where two outputs have ratios (u, v) and (u', v') of R(w | x) / c and R(w | x') / c, the mean of a
convex function of u - e^epsilon v falls if v and v' are exchanged so that the larger u has the larger v. So
outputs that x and x' favour both, such as common bits of two Bloom filters, hide more than those that each
favours alone.

Source: Balle, Bell, Gascón, Nissim, "The privacy blanket of the shuffle model" (CRYPTO 2019), lemma 5.3; Su,
Cheng, Wang (IEEE S&P 2026, arXiv 2504.07414), for the blanket as the best such decomposition; Tchen,
"Inequalities for distributions with given marginals" (Annals of Probability, 1980), for the exchange.
"""

from fractions import Fraction
from math import comb
from typing import NamedTuple

from deniable.estimators.accounting.privacy_loss import krr_atoms
from deniable.estimators.errors import DeniableError
from deniable.estimators.mechanisms.directed_rounding import log_above
from deniable.estimators.mechanisms.hashing.function_block import block_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR, WORDS
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import WORDS as BIT_WORDS
from deniable.estimators.mechanisms.rappor_bits import TwoStepBits
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.estimators.mechanisms.traits import ReportAtom

#: Most bits that a value sets: the atoms are (ones + 1)^2.
MOST_ONES = 16

NOT_INDEPENDENT = (
    "reports that repeat a permanent response are not independent draws, so shuffling them has no epsilon of"
    " its own: state epsilon_inf, or use a collection with fresh noise (for RAPPOR `memoize: false`)"
)


class ShufflingRefusedError(DeniableError, ValueError):
    """No epsilon of shuffled reports can be stated for this."""


class Blanket(NamedTuple):
    """The blanket of a mechanism for its worst pair of true values.

    Parameters
    ----------
    atoms : all outputs.
    epsilon : privacy loss of one report alone, nats, rounded up.
    """

    atoms: tuple[ReportAtom, ...]
    epsilon: float


def blanket_of(mechanism: Mechanism, memoized: bool = False) -> Blanket:
    """Return the blanket of a mechanism whose reports are randomized afresh.

    Parameters
    ----------
    mechanism : any without a permanent response, or RAPPOR whose permanent responses are drawn anew.
    memoized : whether reports repeat a permanent response, or each other.

    Raises
    ------
    ShufflingRefusedError if reports are not independent, or a value sets more than MOST_ONES bits.
    """
    if memoized:
        raise ShufflingRefusedError(NOT_INDEPENDENT)
    atoms = mechanism.report_atoms() or _atoms(mechanism)
    found = tuple(atom for atom in atoms if atom.mass)
    return Blanket(found, log_above(max(atom.first / atom.second for atom in found)))


def _atoms(mechanism: Mechanism) -> list[ReportAtom]:
    match mechanism:
        case KRR():
            return _of_krr(mechanism)
        case LocalHash():
            return _of_hash(mechanism)
        case PrefixTree():  # a level's clients, told apart from others by the cohort
            return _of_hash(mechanism.oracle)
        case PairKRR():
            # Both fields differ: where one is equal, its larger ratios of x and x' come together.
            return [
                ReportAtom(a.first * b.first, a.second * b.second, a.mass * b.mass)
                for a in _of_krr(mechanism.first)
                for b in _of_krr(mechanism.second)
            ]
        case SquareWave():
            return _of_square_wave(mechanism)
        case Rappor() | HotRappor():
            return _of_bits(mechanism)
        case _:
            raise ShufflingRefusedError(NOT_INDEPENDENT)


def _of_krr(mechanism: KRR) -> list[ReportAtom]:
    """x, x' and the other values; of the symmetric channel that reports are a function of (`krr_atoms`)."""
    up, down = krr_atoms(mechanism)
    odds, one = up / down, Fraction(1)
    return [
        ReportAtom(odds, one, down),
        ReportAtom(one, odds, down),
        ReportAtom(one, one, (mechanism.k - 2) * down),
    ]


def _of_hash(mechanism: LocalHash) -> list[ReportAtom]:
    """Functions that give x and x' different buckets, and the least share of functions that give equal ones.

    By `FunctionBlock`, of the functions of a chunk exactly (g^(d - 1) - 1) / (g^d - 1) give two different
    chunks equal buckets, and more do if symbols have a chunk in common.
    """
    up, down = krr_atoms(mechanism.response)
    odds, one, buckets = up / down, Fraction(1), mechanism.hash_buckets
    digits = block_of(buckets).digits
    equal = Fraction(buckets ** (digits - 1) - 1, buckets**digits - 1)
    return [
        ReportAtom(odds, one, (1 - equal) * down),
        ReportAtom(one, odds, (1 - equal) * down),
        ReportAtom(one, one, ((1 - equal) * (buckets - 2) + equal * (buckets - 1)) * down),
        ReportAtom(odds, odds, equal * down),
    ]


def _of_bits(mechanism: TwoStepBits) -> list[ReportAtom]:
    """Bits that only x sets, and bits that only x' sets, h each; c is d^h times the report of no set bit.

    A set bit multiplies the probability of a report by u = q* / p* if it shows 1, else by
    d = (1 - q*) / (1 - p*) < 1. A value with fewer bits, or with bits in common, hides more: dropping bits is
    a function of reports, and common bits have their larger ratios together.
    """
    ones = mechanism.ones
    if ones > MOST_ONES:
        raise ShufflingRefusedError(f"bits that a value sets must be in [1, {MOST_ONES}], got {ones}")
    flip, p, q = (
        Fraction(threshold, BIT_WORDS)
        for threshold in (mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold)
    )
    p_star, q_star = p + (q - p) * flip, q - (q - p) * flip
    up, down = q_star / p_star, (1 - q_star) / (1 - p_star)
    share = [comb(ones, n) * p_star**n * (1 - p_star) ** (ones - n) for n in range(ones + 1)]
    ratio = [(up / down) ** n for n in range(ones + 1)]  # over c, which has d^h
    return [
        ReportAtom(ratio[n], ratio[m], down**ones * share[n] * share[m])
        for n in range(ones + 1)
        for m in range(ones + 1)
    ]


def _of_square_wave(mechanism: SquareWave) -> list[ReportAtom]:
    """As many cells as can be near one number alone; see `square_wave_loss`.

    Multiply-shift makes some cells rarer, by less than 2^-54. c is the rarest probability of all; R(w | x) is
    taken from the commonest cells and R(w | x') from the rarest, which can only raise X.
    """
    is_near = Fraction(mechanism.threshold, WORDS)
    near, far = mechanism.near, mechanism.far
    near_low, near_high = (is_near * Fraction(words, WORDS) for words in (WORDS // near, -(-WORDS // near)))
    low, high = ((1 - is_near) * Fraction(words, WORDS) for words in (WORDS // far, -(-WORDS // far)))
    alone = min(near, far)
    return [
        ReportAtom(near_high / low, Fraction(1), alone * low),
        ReportAtom(high / low, near_low / low, alone * low),
        ReportAtom(near_high / low, near_low / low, (near - alone) * low),
        ReportAtom(high / low, Fraction(1), (far - alone) * low),
    ]
