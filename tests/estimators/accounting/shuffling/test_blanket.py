"""Blankets: what each mechanism's reports have in common, and what is refused."""

from collections import defaultdict
from fractions import Fraction
from functools import partial

import pytest

from deniable.estimators.accounting.privacy_loss import krr_atoms
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.mechanisms.hashing.function_block import block_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.messages import PinMessages

BLOOM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
FRESH: list[Mechanism] = [
    KRR.from_epsilon(3, 1.0),
    LocalHash.from_epsilon(1.0),
    LocalHash.from_epsilon(4.0),
    PairKRR.from_epsilons(3, 4, 0.5, 1.0),
    SquareWave.from_epsilon(0.0, 1.0, 64, 1.0),
    BLOOM,
    OneHotPair.from_epsilon(3, 4, 1.0),
    HotRappor.from_probabilities(10, 3, 0.0, 0.3, 0.5),
]


@pytest.mark.parametrize("mechanism", FRESH, ids=lambda each: each.name)
def test_atoms_are_two_distributions_within_epsilon(mechanism: Mechanism) -> None:
    """Both ratios times c sum to 1 (but for multiply-shift), c to less; no ratio is beyond epsilon."""
    blanket = blanket_of(mechanism)
    first = sum((atom.first * atom.mass for atom in blanket.atoms), Fraction(0))
    second = sum((atom.second * atom.mass for atom in blanket.atoms), Fraction(0))
    assert abs(first - 1) < Fraction(1, 10**15)
    assert abs(second - 1) < Fraction(1, 10**15)
    assert sum((atom.mass for atom in blanket.atoms), Fraction(0)) < 1
    assert min(min(atom.first, atom.second) for atom in blanket.atoms) >= 1
    assert blanket.epsilon == pytest.approx(mechanism.epsilon, rel=1e-9)


@pytest.mark.parametrize("buckets", [2, 3, 53])
def test_atoms_of_local_hashing_are_those_of_all_functions(buckets: int) -> None:
    """Of two symbols that differ in every chunk, under each function and for each report."""
    mechanism = LocalHash.from_epsilon(2.0, hash_buckets=buckets)
    up, down = krr_atoms(mechanism.response)
    table = block_of(buckets).table
    masses: dict[tuple[Fraction, Fraction], Fraction] = defaultdict(Fraction)
    for first, second in table[:, [0, -1]].tolist():
        for report in range(buckets):
            ratios = (up / down if report == bucket else Fraction(1) for bucket in (first, second))
            masses[*ratios,] += down / len(table)
    assert {(atom.first, atom.second): atom.mass for atom in blanket_of(mechanism).atoms} == masses


def test_reports_of_a_level_hide_among_each_other_as_those_of_local_hashing() -> None:
    mechanism = PrefixTree.from_epsilon((2, 4), 1.0)
    assert blanket_of(mechanism) == blanket_of(mechanism.oracle)


def test_messages(pin_messages: PinMessages) -> None:
    many_bits = HotRappor.from_probabilities(64, 17, 0.25, 0.35, 0.65)
    pin_messages(
        {
            "longitudinal k-RR": partial(blanket_of, LongitudinalKRR.from_epsilons(4, 4.0, 1.0), False),
            "longitudinal hashing": partial(blanket_of, LongitudinalHash.from_epsilons(4.0, 1.0), False),
            "memoized RAPPOR": partial(blanket_of, BLOOM, True),
            "memoized k-RR": partial(blanket_of, KRR.from_epsilon(3, 1.0), True),
            "17 bits for a value": partial(blanket_of, many_bits),
        }
    )
