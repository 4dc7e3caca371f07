"""Subset selection: exact probabilities against an enumeration of all sets, figures, and its estimates.

Coverage: 200 seeds of 20 shares each at 95 %: an average below .93 in 1e-6 of the runs of independent shares;
errors too small by a tenth hold .92.
"""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from math import comb, exp

import numpy as np
import pytest

from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.decoding.hot.decode import decode_hot
from deniable.estimators.mechanisms.krr import WORDS
from deniable.estimators.mechanisms.mechanism import at_epsilon
from deniable.estimators.mechanisms.subset_selection import SubsetSelection
from deniable.estimators.planning import expected_std_error
from deniable.producers.randomization.randomizers import randomize_subsets
from tests.support.messages import PinMessages
from tests.support.producers.sources import RepeatableWords

SMALL = [(k, epsilon) for k in (2, 3, 5, 7) for epsilon in (0.1, 1.0, 2.5)]


def probabilities(mechanism):
    """P(set | value) in row `value`, exactly: the true one is in it with p, the others are uniform."""
    k, w, p = mechanism.buckets, mechanism.chosen, Fraction(mechanism.threshold, WORDS)
    sets = list(combinations(range(k), w))
    return [
        [p / comb(k - 1, w - 1) if value in chosen else (1 - p) / comb(k - 1, w) for chosen in sets]
        for value in range(k)
    ]


@pytest.mark.parametrize(("k", "epsilon"), SMALL)
def test_figures_are_those_of_all_sets(k, epsilon):
    mechanism = SubsetSelection.from_epsilon(k, epsilon)
    rows = probabilities(mechanism)
    assert all(sum(row) == 1 for row in rows)
    worst = max(a / b for one in rows for other in rows for a, b in zip(one, other, strict=True))
    with localcontext(prec=60):
        assert Decimal(worst.numerator) / worst.denominator <= Decimal(mechanism.epsilon).exp()
    assert mechanism.epsilon <= epsilon
    assert mechanism.epsilon == pytest.approx(epsilon, abs=1e-12)
    sets = list(combinations(range(k), mechanism.chosen))
    rates = [sum(p for p, chosen in zip(rows[value], sets, strict=True) if 0 in chosen) for value in (0, 1)]
    assert mechanism.counter_rates == pytest.approx([float(rate) for rate in rates])


@pytest.mark.parametrize(("k", "epsilon"), SMALL)
def test_atoms_are_those_of_all_sets(k, epsilon):
    """For every pair of values: the mass of each pair of ratios is that of the sets with it."""
    mechanism = SubsetSelection.from_epsilon(k, epsilon)
    rows = probabilities(mechanism)
    least = [min(column) for column in zip(*rows, strict=True)]
    masses = {}
    for first, second, c in zip(rows[0], rows[1], least, strict=True):
        masses[first / c, second / c] = masses.get((first / c, second / c), 0) + c
    atoms = {(atom.first, atom.second): atom.mass for atom in mechanism.report_atoms() if atom.mass}
    assert atoms == masses
    assert blanket_of(mechanism).epsilon == pytest.approx(epsilon)


@pytest.mark.parametrize(
    ("k", "epsilon", "variance", "chosen"),
    [
        (10, 0.5, 12.6, 4),
        (10, 1, 2.82, 2),
        (10, 2, 0.377, 1),
        (100, 0.5, 15.3, 38),
        (100, 1, 3.59, 27),
        (100, 2, 0.690, 12),
        (1000, 1, 3.67, 269),
        (1000, 4, 0.0739, 18),
    ],
)
def test_size_has_the_least_variance(k, epsilon, variance, chosen):
    mechanism = SubsetSelection.from_epsilon(k, epsilon)
    assert mechanism.chosen == chosen
    assert expected_std_error(mechanism, 1) ** 2 == pytest.approx(variance, rel=5e-3)
    odds = Fraction(exp(epsilon))
    others = [SubsetSelection._of_size(k, size, odds) for size in range(1, k, max(1, k // 50))]
    assert min(each._variance for each in others) >= mechanism._variance * (1 - Fraction(1, 10**9))


def test_another_epsilon_has_another_size():
    assert at_epsilon(SubsetSelection.from_epsilon(100, 1.0), 0.5) == SubsetSelection.from_epsilon(100, 0.5)


@pytest.mark.slow
def test_intervals_hold():
    mechanism, truth = SubsetSelection.from_epsilon(20, 1.0), np.arange(20) ** 2
    values, words = np.repeat(np.arange(20), truth), RepeatableWords(7)
    shares, covered = truth / truth.sum(), []
    for _ in range(200):
        rows = np.unpackbits(randomize_subsets(values, mechanism, words), axis=1, bitorder="little")
        estimate = decode_hot(rows.sum(axis=0, dtype=np.int64)[None], np.array([len(values)]), mechanism)
        covered.append(np.mean((estimate.low <= shares) & (shares <= estimate.high)))
    assert 0.93 <= np.mean(covered) <= 0.98


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            "one value": lambda: SubsetSelection.from_epsilon(1, 1.0),
            "too many values": lambda: SubsetSelection.from_epsilon(4097, 1.0),
            "epsilon of 0": lambda: SubsetSelection.from_epsilon(10, 0.0),
            "epsilon too small": lambda: SubsetSelection.from_epsilon(10, 9e-7),
            "an empty set": lambda: SubsetSelection(10, 0, WORDS // 2),
            "a set of all values": lambda: SubsetSelection(10, 10, WORDS - 1),
            "no likelier truth": lambda: SubsetSelection(10, 5, WORDS // 2),
            "no bucket": lambda: randomize_subsets(
                np.array([10]), SubsetSelection.from_epsilon(10, 1.0), RepeatableWords(1)
            ),
        }
    )
