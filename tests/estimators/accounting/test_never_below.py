"""No stated figure is below the truth, even in its last digit: exact distributions, 60 digits."""

from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, permutations, product
from math import comb, prod
from typing import Any

import pytest

from deniable.estimators.accounting.accountant import costs, loss_of_reports
from deniable.estimators.accounting.memoized_krr import shared_krr_loss
from deniable.estimators.accounting.renyi import renyi_divergence, zcdp_rho
from deniable.estimators.mechanisms.krr import KRR, WORDS
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor_hot import HotRappor

pytestmark = [pytest.mark.slow, pytest.mark.all]

Law = tuple[tuple[Decimal, Decimal], ...]
Matrix = list[list[Fraction]]

DELTAS = (1e-9, 1e-6, 1e-4, 1e-2)
DIGITS = Context(prec=60)


@pytest.fixture(autouse=True)
def _sixty_digits() -> Iterator[None]:
    with localcontext(DIGITS):
        yield


def channel(mechanism: KRR) -> Matrix:
    """P(report w | truth v) in row v; other values get the words that multiply-shift maps to them."""
    k, truth = mechanism.k, Fraction(mechanism.threshold, WORDS)
    ends = [-(-number * WORDS // (k - 1)) for number in range(k)]
    lies = [(1 - truth) * Fraction(end - start, WORDS) for start, end in pairwise(ends)]
    return [[*lies[:value], truth, *lies[value:]] for value in range(k)]


def decimals(first: list[Fraction], second: list[Fraction]) -> Law:
    """P of every output under each of two true values; equally likely outputs are merged."""
    times = sorted(Counter(zip(first, second, strict=True)).items())
    return tuple(
        (n * Decimal(p.numerator) / p.denominator, n * Decimal(q.numerator) / q.denominator)
        for (p, q), n in times
    )


def laws_of_sequences(rows: list[list[Fraction]]) -> list[Law]:
    """Every pair of true values, each as the probabilities of all sequences."""
    return list({decimals(first, second) for first, second in permutations(rows, 2)})


def fresh_krr_laws(mechanism: KRR, reports: int) -> list[Law]:
    return laws_of_sequences([list(map(prod, product(row, repeat=reports))) for row in channel(mechanism)])


def shared_krr_laws(mechanism: LongitudinalKRR, reports: int) -> list[Law]:
    given = [
        list(map(prod, product(row, repeat=reports))) for row in channel(mechanism.instantaneous)
    ]  # by permanent response
    return laws_of_sequences(
        [
            [sum(map(Fraction.__mul__, row, column), Fraction(0)) for column in zip(*given, strict=True)]
            for row in channel(mechanism.permanent)
        ]
    )


def bit_laws(mechanism: HotRappor, reports: int) -> list[Law]:
    """Counts of ones in the differing bits: half are true under P, the other half under Q."""
    flip, p, q = (
        Fraction(threshold, 1 << 32)
        for threshold in (mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold)
    )
    zero, one = (
        [comb(reports, j) * rate**j * (1 - rate) ** (reports - j) for j in range(reports + 1)]
        for rate in (p, q)
    )
    if_one = [(1 - flip) * a + flip * b for a, b in zip(one, zero, strict=True)]
    if_zero = [(1 - flip) * b + flip * a for a, b in zip(one, zero, strict=True)]
    halves = [[if_one] * mechanism.hot, [if_zero] * mechanism.hot]
    first, second = ([*halves[i], *halves[1 - i]] for i in (0, 1))
    return [decimals(list(map(prod, product(*first))), list(map(prod, product(*second))))]


def longitudinal(k: int, permanent: float, instantaneous: float) -> LongitudinalKRR:
    return LongitudinalKRR(KRR.from_epsilon(k, permanent), KRR.from_epsilon(k, instantaneous))


def hot(ones: int, f: float, p: float, q: float) -> HotRappor:
    return HotRappor.from_probabilities(128, ones, f, p, q)


BY_NIGHT = (pytest.mark.nightly,)
CASES: list[Any] = [
    pytest.param(fresh_krr_laws, KRR.from_epsilon(k, epsilon), reports, False, marks=marks)
    for k, reports in ((2, 7), (3, 6), (4, 4), (6, 3))
    for epsilon, marks in ((0.01, ()), (0.3, BY_NIGHT), (1.0, BY_NIGHT), (3.0, ()))
]
CASES += [
    pytest.param(
        shared_krr_laws,
        longitudinal(k, permanent, instantaneous),
        reports,
        True,
        marks=BY_NIGHT if reports == 2 else marks,
    )
    for k, most in ((2, 7), (3, 5), (4, 3))
    for reports in (1, 2, most)
    for permanent, instantaneous, marks in (
        (1e-4, 1e-5, ()), (1.0, 0.3, BY_NIGHT), (2.0, 2.0, BY_NIGHT), (8.0, 1.0, ()),
    )
]  # fmt: skip
CASES += [
    (bit_laws, hot(ones, f, p, q), reports, True)
    for ones, most in ((1, 9), (2, 3))
    for reports in (1, 2, most)
    for f, p, q in (
        (0.0, 0.35, 0.65), (0.25, 0.35, 0.65), (0.5, 0.5, 0.75), (0.01, 0.1, 0.7), (0.99, 0.499, 0.501),
    )
]  # fmt: skip


def largest_loss(laws: list[Law]) -> Decimal:
    return max(p / q for law in laws for p, q in law).ln()


def largest_delta(laws: list[Law], epsilon: float) -> Decimal:
    odds = Decimal(epsilon).exp()
    return max(sum((max(p - odds * q, Decimal(0)) for p, q in law), Decimal(0)) for law in laws)


def largest_divergence(laws: list[Law], order: float) -> Decimal:
    if order == 1:
        return max(sum((p * (p / q).ln() for p, q in law), Decimal(0)) for law in laws)
    t = Decimal(order) - 1
    return max(sum((p * (p / q) ** t for p, q in law), Decimal(0)).ln() for law in laws) / t


@pytest.mark.parametrize(("laws_of", "mechanism", "reports", "memoized"), CASES)
def test_no_figure_is_below_the_exact_distribution(
    laws_of: Callable[..., list[Law]], mechanism: Mechanism, reports: int, memoized: bool
) -> None:
    """Check the basic bound, delta at every other bound, the RDP curve and rho.

    Basic and RDP must also be close. Lies with unequal probabilities may cost 1e-17.
    """
    laws, loss = laws_of(mechanism, reports), loss_of_reports(mechanism, reports, memoized)
    truth, basic = largest_loss(laws), Decimal(loss.largest)
    assert truth <= basic <= truth * (1 + Decimal("1e-12")) + Decimal("1e-17")
    for delta in DELTAS:
        for name, epsilon in costs(mechanism, reports, delta, memoized).items():
            assert largest_delta(laws, epsilon) <= Decimal(delta), (name, delta)
    rho = Decimal(zcdp_rho(loss))
    for order in (1.0, 1.000001, 1.5, 4.0, 40.0):
        divergence = largest_divergence(laws, order)
        assert divergence <= Decimal(renyi_divergence(loss, order)) <= divergence * (1 + Decimal("1e-3"))
        assert divergence / Decimal(order) <= rho


@pytest.mark.parametrize("reports", [31, 1000, 10_000])
@pytest.mark.parametrize(("f", "p", "q"), [(0.25, 0.35, 0.65), (0.5, 0.499, 0.5), (0.01, 0.4999, 0.5001)])
def test_largest_loss_of_many_bits_is_an_upper_bound(reports: int, f: float, p: float, q: float) -> None:
    """The worst report has ones in all bits that are true under P, and in no others."""
    mechanism = hot(2, f, p, q)
    flip, low, high = (
        Decimal(threshold) / (1 << 32)
        for threshold in (mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold)
    )
    odds = Decimal(1)
    for more, less in ((high**reports, low**reports), ((1 - low) ** reports, (1 - high) ** reports)):
        odds *= ((1 - flip) * more + flip * less) / (flip * more + (1 - flip) * less)
    truth = mechanism.ones * odds.ln()
    stated = costs(mechanism, reports, 1e-6, memoized=True)["basic"]
    assert truth <= Decimal(stated) <= truth * (1 + Decimal("1e-10"))


@pytest.mark.parametrize("reports", [31, 1000, pytest.param(10_000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize(
    ("k", "permanent", "instantaneous"), [(3, 1.0, 0.001), (3, 1.0, 1e-9), (6, 1.0, 0.3), (10**6, 3.0, 1e-4)]
)
def test_largest_loss_of_many_values_is_an_upper_bound(
    reports: int, k: int, permanent: float, instantaneous: float
) -> None:
    """All reports show the same value. Lies count as equally likely; the error is at most k 2^-64 a step."""
    mechanism = longitudinal(k, permanent, instantaneous)
    unequal = Decimal("2.02") * (reports + 1) * k / WORDS
    (p1, q1), (p2, q2) = (
        (Decimal(step.threshold) / WORDS, Decimal(WORDS - step.threshold) / WORDS / (k - 1))
        for step in (mechanism.permanent, mechanism.instantaneous)
    )
    all_v = (p2 / q2) ** reports
    truth = ((p1 * all_v + (k - 1) * q1) / (q1 * all_v + 1 - q1)).ln()
    stated = Decimal(shared_krr_loss(mechanism, reports).largest)
    assert truth <= stated <= truth * (1 + Decimal("1e-10")) + unequal
