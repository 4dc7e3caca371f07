"""Bounds of shuffled reports against complete enumerations in exact fractions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, permutations, product
from math import factorial, lcm, prod
from typing import Any

import pytest

from deniable.estimators.accounting.shuffling.amplification import mean_positive_part, shuffled_delta
from deniable.estimators.accounting.shuffling.attained import attained_epsilon
from deniable.estimators.accounting.shuffling.blanket import Blanket, blanket_of
from deniable.estimators.accounting.shuffling.windows import windows_epsilon
from deniable.estimators.mechanisms.directed_rounding import exp_below
from deniable.estimators.mechanisms.hashing.function_block import block_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR, WORDS
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave

#: The probability of each output under one true value.
Law = dict[Any, Fraction]

EPSILONS = (0.0, 0.1, 0.4, 0.8, 1.2)


def krr_laws(mechanism: KRR) -> list[Law]:
    k, truth = mechanism.k, Fraction(mechanism.threshold, WORDS)
    ends = [-(-number * WORDS // (k - 1)) for number in range(k)]
    lies = [(1 - truth) * Fraction(end - start, WORDS) for start, end in pairwise(ends)]
    return [dict(enumerate([*lies[:value], truth, *lies[value:]])) for value in range(k)]


def pair_laws(mechanism: PairKRR) -> list[Law]:
    first, second = krr_laws(mechanism.first), krr_laws(mechanism.second)
    return [
        {(w, u): p * q for (w, p), (u, q) in product(a.items(), b.items())} for a, b in product(first, second)
    ]


def bit_laws(mechanism: HotRappor) -> list[Law]:
    """All sets of up to `hot` buckets, also smaller ones."""
    half = Fraction(mechanism.flip_threshold, 1 << 32)
    p, q = Fraction(mechanism.p_threshold, 1 << 32), Fraction(mechanism.q_threshold, 1 << 32)
    p_star, q_star = p * (1 - half) + q * half, q * (1 - half) + p * half
    buckets = range(mechanism.buckets)
    sets = [set(each) for size in range(1, mechanism.hot + 1) for each in combinations(buckets, size)]
    laws: list[Law] = []
    for chosen in sets:
        ones = [q_star if bucket in chosen else p_star for bucket in buckets]
        laws.append(
            {
                bits: prod(
                    (one if bit else 1 - one for bit, one in zip(bits, ones, strict=True)), start=Fraction(1)
                )
                for bits in product((0, 1), repeat=mechanism.buckets)
            }
        )
    return laws


def hash_laws(mechanism: LocalHash) -> list[Law]:
    """Three symbols, of which two differ in every chunk, and two only in one."""
    table = block_of(mechanism.hash_buckets).table
    buckets = krr_laws(mechanism.response)
    symbols = (0, 1, table.shape[1] - 1)
    share = Fraction(1, len(table))
    return [
        {(f, w): share * p for f in range(len(table)) for w, p in buckets[table[f, s]].items()}
        for s in symbols
    ]


def square_wave_laws(mechanism: SquareWave) -> list[Law]:
    """Near cells by one word, far ones by another; see `SquareWave`."""
    near, far = mechanism.near, mechanism.far
    is_near, cells = Fraction(mechanism.threshold, WORDS), near + far

    def words(count: int) -> list[Fraction]:
        ends = [-(-number * WORDS // count) for number in range(count + 1)]
        return [Fraction(end - start, WORDS) for start, end in pairwise(ends)]

    laws: list[Law] = []
    for x in range(mechanism.steps):
        rest = [cell for cell in range(cells) if not x <= cell < x + near]
        law: Law = {x + place: is_near * share for place, share in enumerate(words(near))}
        law |= {cell: (1 - is_near) * share for cell, share in zip(rest, words(far), strict=True)}
        laws.append(law)
    return laws


def shuffled(laws: Iterable[Mapping[Any, Any]]) -> Mapping[Any, Any]:
    """The exact distribution of the multiset of one report of each law; or weights, if those are given."""
    found: Mapping[Any, Any] = {(): 1}
    for law in laws:
        found = joined(found, law)
    return found


def joined(found: Mapping[Any, Any], law: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Add a report to a multiset, as a sorted tuple."""
    following: defaultdict[Any, Any] = defaultdict(int)
    for (so_far, mass), (output, chance) in product(found.items(), law.items()):
        following[tuple(sorted((*so_far, output)))] += mass * chance
    return following


def true_delta(laws: list[Law], reports: int, epsilon: float) -> Fraction:
    """The largest delta of any two data sets that differ in one true value: of whole numbers, over a unit."""
    odds, largest = exp_below(epsilon), 0
    unit = lcm(*(chance.denominator for law in laws for chance in law.values()))
    weights = [{output: int(chance * unit) for output, chance in law.items()} for law in laws]
    for others in combinations_with_replacement(weights, reports - 1):
        rest = shuffled(others)
        for p, q in permutations([joined(rest, law) for law in weights], 2):
            largest = max(largest, sum(max(odds.denominator * p[w] - odds.numerator * q[w], 0) for w in p))
    return Fraction(largest, odds.denominator * unit**reports)


def exact_sum(blanket: Blanket, reports: int, epsilon: float) -> Fraction:
    """E[(X_1 + … + X_n)_+] / n over all numbers of each atom."""
    factor = exp_below(epsilon)
    sizes = [atom.first - factor * atom.second for atom in blanket.atoms] + [Fraction(0)]
    mass = [atom.mass for atom in blanket.atoms]
    mass.append(1 - sum(mass, Fraction(0)))
    total = Fraction(0)
    for numbers in product(range(reports + 1), repeat=len(mass) - 1):
        rest = reports - sum(numbers)
        if rest >= 0:
            value = sum((n * size for n, size in zip((*numbers, rest), sizes, strict=True)), Fraction(0))
            ways = factorial(reports) // prod(map(factorial, (*numbers, rest)))
            if value > 0:
                total += value * ways * prod(m**n for m, n in zip(mass, (*numbers, rest), strict=True))
    return total / reports


def krr_case(k: int, epsilon: float, reports: int) -> tuple[Mechanism, list[Law], int]:
    mechanism = KRR.from_epsilon(k, epsilon)
    return mechanism, krr_laws(mechanism), reports


PAIR = PairKRR.from_epsilons(2, 2, 0.5, 1.0)
ONE_HOT = HotRappor.from_probabilities(3, 1, 0.0, 0.3, 0.7)
TWO_HOT = HotRappor.from_probabilities(3, 2, 0.25, 0.3, 0.6)
HASH = LocalHash.from_epsilon(1.0)
WAVE = SquareWave.from_epsilon(0.0, 1.0, 4, 1.0)
CASES = {
    "k 2, n 1": krr_case(2, 1.0, 1),
    "k 2, n 6": krr_case(2, 1.0, 6),
    "k 3, n 4": krr_case(3, 1.5, 4),
    "k 4, n 3": krr_case(4, 1.0, 3),
    "k 3, n 2": krr_case(3, 4.0, 2),
    "pair": (PAIR, pair_laws(PAIR), 3),
    "one-hot": (ONE_HOT, bit_laws(ONE_HOT), 3),
    "two-hot": (TWO_HOT, bit_laws(TWO_HOT), 2),
    "local-hash": (HASH, hash_laws(HASH), 2),
    "number": (WAVE, square_wave_laws(WAVE), 3),
}
#: The others take up to two seconds.
QUICK = ("k 2, n 1", "k 2, n 6", "k 3, n 2", "pair")


@pytest.mark.parametrize(
    "case", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in CASES]
)
def test_no_delta_is_below_the_truth(case: str) -> None:
    """Catches atoms of another pair than the worst one, and a blanket larger than the reports contain."""
    mechanism, laws, reports = CASES[case]
    blanket = blanket_of(mechanism)
    for epsilon in EPSILONS:
        if epsilon < mechanism.epsilon:
            high = shuffled_delta(blanket, reports, epsilon).high
            assert 0 < true_delta(laws, reports, epsilon) <= Fraction(high), epsilon


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reports", [1, 2, 5])
def test_the_sum_is_enclosed(case: str, reports: int) -> None:
    """Catches an error of the integral, of its errors and of what smoothing adds."""
    mechanism, _, _ = CASES[case]
    blanket = blanket_of(mechanism)
    if len(blanket.atoms) > 5:
        reports = min(reports, 2)
    for epsilon in EPSILONS:
        if epsilon < mechanism.epsilon:
            low, high = mean_positive_part(blanket.atoms, reports, epsilon)
            assert Fraction(low) <= exact_sum(blanket, reports, epsilon) <= Fraction(high), epsilon
            assert high - low <= 1e-3 * high


@pytest.mark.slow
def test_the_sum_of_forty_reports_is_enclosed() -> None:
    blanket = blanket_of(KRR.from_epsilon(2, 1.0))
    for epsilon in (0.0, 0.2, 0.5, 0.9, 0.99):
        low, high = mean_positive_part(blanket.atoms, 40, epsilon)
        assert Fraction(low) <= exact_sum(blanket, 40, epsilon) <= Fraction(high), epsilon


@pytest.mark.parametrize("case", ["k 2, n 6", "k 3, n 4", "k 4, n 3", "k 3, n 2"])
@pytest.mark.parametrize("delta", [0.2, 0.03, 1e-3])
def test_what_is_attained_is_attained(case: str, delta: float) -> None:
    mechanism, laws, reports = CASES[case]
    assert isinstance(mechanism, KRR)
    epsilon = attained_epsilon(mechanism, reports, delta)
    assert epsilon == 0 or true_delta(laws, reports, epsilon) >= Fraction(delta)


@pytest.mark.parametrize(("k", "windows"), [(2, 2), (2, 4), (3, 2)])
@pytest.mark.parametrize("delta", [0.2, 1e-2, 1e-5])
def test_no_epsilon_of_several_windows_is_below_the_truth(k: int, windows: int, delta: float) -> None:
    """In each window the other report holds the second of the two values, the same in all windows."""
    mechanism = KRR.from_epsilon(k, 1.0)
    laws = krr_laws(mechanism)
    epsilon = windows_epsilon(blanket_of(mechanism), 2, delta, windows)
    first, second = shuffled([laws[0], laws[1]]), shuffled([laws[1], laws[1]])
    odds, total = exp_below(epsilon), Fraction(0)
    for outcome in product(first, repeat=windows):
        p, q = prod(first[each] for each in outcome), prod(second[each] for each in outcome)
        total += max(Fraction(p) - odds * Fraction(q), Fraction(0))
    assert total <= Fraction(delta)
