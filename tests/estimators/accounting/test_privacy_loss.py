"""The loss of one report matches an enumeration of its outputs, including integer thresholds."""

from fractions import Fraction
from itertools import product
from math import log, prod

import numpy as np
import pytest

from deniable.estimators.accounting.privacy_loss import (
    PrivacyLoss,
    bits_loss,
    krr_loss,
    longitudinal_loss,
    pair_loss,
    square_wave_loss,
)
from deniable.estimators.mechanisms.krr import KRR, WORDS
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor_bits import WORDS as BIT_WORDS
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.estimators.mechanisms.test_square_wave import exact_channel

Row = list[Fraction]


def lies(mechanism: KRR, truth: int) -> Row:
    """P(report w | truth), counting the words that multiply-shift maps to each lie."""
    others = mechanism.k - 1
    starts = [-(-number * WORDS // others) for number in range(others + 1)]
    chance = 1 - Fraction(mechanism.threshold, WORDS)
    row = [chance * Fraction(starts[number + 1] - starts[number], WORDS) for number in range(others)]
    return [*row[:truth], 1 - chance, *row[truth:]]


def channel(mechanism: KRR) -> list[Row]:
    return [lies(mechanism, truth) for truth in range(mechanism.k)]


def excess(first: Row, second: Row, odds: Fraction) -> Fraction:
    return sum((max(p - odds * q, Fraction(0)) for p, q in zip(first, second, strict=True)), Fraction(0))


def excess_of(loss: PrivacyLoss, odds: Fraction) -> float:
    """Delta at epsilon ln(odds) of one copy, from the masses under P and Q."""
    return float(np.maximum(loss.mass - float(odds) * loss.mass * np.exp(-loss.losses), 0).sum())


ODDS = [Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(5, 2)]


@pytest.mark.parametrize("k", [2, 3, 7, 11])
def test_krr_loss_matches_its_channel_for_the_worst_pair(k: int) -> None:
    mechanism = KRR.from_epsilon(k, 1.0)
    rows = channel(mechanism)
    for odds in ODDS:
        worst = max(excess(rows[v], rows[w], odds) for v, w in product(range(k), repeat=2) if v != w)
        assert excess_of(krr_loss(mechanism), odds) == pytest.approx(float(worst), rel=1e-14)


@pytest.mark.parametrize("k", [3, 7])
def test_longitudinal_loss_matches_its_channel_for_the_worst_pair(k: int) -> None:
    mechanism = LongitudinalKRR(KRR.from_epsilon(k, 2.0), KRR.from_epsilon(k, 1.0))
    first, second = channel(mechanism.permanent), channel(mechanism.instantaneous)
    rows = [[sum((row[b] * second[b][y] for b in range(k)), Fraction(0)) for y in range(k)] for row in first]
    for odds in ODDS:
        worst = max(excess(rows[v], rows[w], odds) for v, w in product(range(k), repeat=2) if v != w)
        assert excess_of(longitudinal_loss(mechanism), odds) == pytest.approx(float(worst), rel=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("steps", [4, 7, 16])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_square_wave_loss_matches_its_channel_for_the_worst_pair(steps: int, epsilon: float) -> None:
    """Between the exact delta and 1e-14 above it; half of these have no two numbers without a common cell."""
    mechanism = SquareWave.from_epsilon(0, 1, steps, epsilon)
    rows = [list(row) for row in zip(*exact_channel(mechanism), strict=True)]
    loss = square_wave_loss(mechanism)
    assert loss.largest == mechanism.epsilon
    for odds in [*ODDS, Fraction(40)]:
        worst = float(max(excess(rows[v], rows[w], odds) for v, w in product(range(steps), repeat=2)))
        assert excess_of(loss, odds) == pytest.approx(worst, rel=1e-13, abs=1e-15)


def rows_of(mechanism: PairKRR) -> list[Row]:
    first, second = map(channel, mechanism.fields)
    return [[x * y for x in one for y in other] for one in first for other in second]


@pytest.mark.parametrize(("k1", "k2"), [(2, 2), (3, 4), (7, 2)])
def test_pair_loss_matches_its_channel_for_the_worst_pair(k1: int, k2: int) -> None:
    mechanism = PairKRR.from_epsilons(k1, k2, 0.7, 0.7)
    rows, loss = rows_of(mechanism), pair_loss(mechanism)
    assert loss.largest == mechanism.epsilon
    for odds in ODDS:
        worst = max(excess(one, other, odds) for one, other in product(rows, repeat=2))
        assert excess_of(loss, odds) == pytest.approx(float(worst), rel=1e-13)


@pytest.mark.parametrize("other_epsilon", [0.1, 0.5, 2.0])
def test_pair_loss_of_different_epsilons_is_never_below_the_truth(other_epsilon: float) -> None:
    mechanism = PairKRR.from_epsilons(3, 2, 0.8, other_epsilon)
    rows, loss = rows_of(mechanism), pair_loss(mechanism)
    for odds in ODDS:
        worst = max(excess(one, other, odds) for one, other in product(rows, repeat=2))
        assert float(worst) * (1 - 1e-13) <= excess_of(loss, odds) <= 1


def test_two_reports_of_a_pair_with_different_epsilons_are_bounded_not_exact() -> None:
    """By enumeration in fractions: two reports cost less than stated, so docs call it a bound."""
    mechanism = PairKRR.from_epsilons(2, 2, 1.0, 0.25)
    rows, loss = rows_of(mechanism), pair_loss(mechanism)
    first, second = ([x * y for x in row for y in row] for row in (rows[0], rows[3]))
    together = PrivacyLoss(loss.step, 2 * loss.first, np.convolve(loss.mass, loss.mass), 2 * loss.largest)
    bounds = [(excess_of(together, odds), float(excess(first, second, odds))) for odds in ODDS]
    assert all(bound >= truth * (1 - 1e-13) for bound, truth in bounds)
    assert max(bound / truth for bound, truth in bounds if truth > 0) > 1.01


def test_hot_above_half_of_the_values_costs_less_than_is_said() -> None:
    """By enumeration in fractions of all pairs of sets: 4 of 4 cost half of the figure, 2 of 4 all of it."""
    for hot, share in ((2, 1.0), (3, 2 / 3), (4, 0.5)):
        mechanism = HotRappor.from_probabilities(4, hot, f=0.0, p=0.25, q=0.75)
        rows = [bit_row(bits, mechanism) for bits in product((0, 1), repeat=4) if sum(bits) <= hot]
        worst = max(max(x / y for x, y in zip(*two, strict=True)) for two in product(rows, repeat=2))
        assert log(worst) == pytest.approx(share * mechanism.epsilon, rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 7, 1000, 2**20 + 1, 2**31])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_step_is_epsilon_rounded_up(k: int, epsilon: float) -> None:
    mechanism = KRR.from_epsilon(k, epsilon)
    loss = krr_loss(mechanism)
    assert loss.largest == mechanism.epsilon
    assert mechanism.epsilon <= loss.step <= mechanism.epsilon * (1 + 2**-52) + k**2 * 2**-63


def bit_row(true_bits: tuple[int, ...], mechanism: HotRappor) -> Row:
    """P(report | true bits) for every report of these bits."""
    flip, p, q = (
        Fraction(threshold, BIT_WORDS)
        for threshold in (mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold)
    )
    ones = [q + (p - q) * (flip if bit else 1 - flip) for bit in true_bits]
    return [
        prod((one if shown else 1 - one for one, shown in zip(ones, report, strict=True)), start=Fraction(1))
        for report in product((0, 1), repeat=len(true_bits))
    ]


@pytest.mark.parametrize("ones", [1, 2, 3])
def test_bits_loss_enumerates_reports_of_the_differing_bits(ones: int) -> None:
    mechanism = HotRappor.from_probabilities(8, ones, f=0.3, p=0.2, q=0.7)
    first = bit_row((1,) * ones + (0,) * ones, mechanism)
    second = bit_row((0,) * ones + (1,) * ones, mechanism)
    one = bits_loss(mechanism)
    assert one.copies == ones
    mass = np.ones(1)
    for _ in range(ones):
        mass = np.convolve(mass, one.mass)
    together = PrivacyLoss(one.step, -ones, mass, one.largest)
    for odds in ODDS:
        assert excess_of(together, odds) == pytest.approx(float(excess(first, second, odds)), rel=1e-13)
    assert mechanism.epsilon_one * (1 - 1e-15) <= one.largest <= mechanism.epsilon_one


def test_fewer_differing_bits_lose_less() -> None:
    mechanism = HotRappor.from_probabilities(8, 2, f=0.3, p=0.2, q=0.7)
    pairs = [((1, 1, 0, 0), (0, 0, 1, 1)), ((1, 1, 0), (0, 0, 1)), ((1, 1), (0, 0)), ((1, 0), (0, 1))]
    for odds in ODDS:
        worst, *fewer = (excess(bit_row(v, mechanism), bit_row(w, mechanism), odds) for v, w in pairs)
        assert all(other <= worst for other in fewer)


def test_loss_is_symmetric_in_the_values() -> None:
    mechanism = HotRappor.from_probabilities(8, 1, f=0.3, p=0.2, q=0.7)
    for loss in (krr_loss(KRR.from_epsilon(5, 1.0)), bits_loss(mechanism)):
        under_q = loss.mass * np.exp(-loss.losses)
        assert under_q == pytest.approx(loss.mass[::-1], rel=1e-14)


def test_largest_loss_of_copies_is_rounded_up() -> None:
    loss = krr_loss(KRR.from_epsilon(16, 0.1))
    for reports in (1, 3, 7, 8, 1000):
        assert Fraction(loss.times(reports).largest) >= reports * Fraction(loss.largest)
        assert loss.times(reports).largest == pytest.approx(reports * loss.largest, rel=2**-52)
    assert krr_loss(KRR.from_epsilon(16, 1.0)).times(8).largest == 8.0
