"""What memoized reports cost whatever the values do, against enumeration with exact fractions."""

from fractions import Fraction
from itertools import product
from math import log, prod

import pytest

from deniable.estimators.accounting.accountant import allowed_reports, costs
from deniable.estimators.accounting.changing_buckets import ChangingBuckets
from deniable.estimators.accounting.changing_values import ChangingResponses, changing
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor

ROUNDING = 1e-9  # of multiply-shift, which shares words unevenly, and of floats


def channel(mechanism: KRR) -> list[list[Fraction]]:
    truth = Fraction(mechanism.threshold, 1 << 64)
    lie = (1 - truth) / (mechanism.k - 1)
    return [[truth if i == j else lie for j in range(mechanism.k)] for i in range(mechanism.k)]


def bits(mechanism: HotRappor) -> tuple[Fraction, Fraction, Fraction]:
    thresholds = mechanism.flip_threshold, mechanism.p_threshold, mechanism.q_threshold
    flip, p, q = (Fraction(each, 1 << 32) for each in thresholds)
    return flip, p, q


def pattern(values: tuple[int, ...]) -> tuple[int, ...]:
    """Which values are equal: the number of each by first use."""
    return tuple(sorted(set(values), key=values.index).index(each) for each in values)


def krr_likelihood(mechanism: LongitudinalKRR, values: tuple[int, ...], shown: tuple[int, ...]) -> Fraction:
    first, second = channel(mechanism.permanent), channel(mechanism.instantaneous)
    return prod(
        sum(
            (
                first[value][kept]
                * prod(second[kept][out] for each, out in zip(values, shown, strict=True) if each == value)
                for kept in range(mechanism.k)
            ),
            Fraction(),
        )
        for value in set(values)
    )


def bits_likelihood(mechanism: HotRappor, values: tuple[int, ...], shown: tuple[int, ...]) -> Fraction:
    """Of one-hot values; a report is a number whose binary digits are its bits."""
    flip, p, q = bits(mechanism)
    found = Fraction(1)
    for value, bit in product(set(values), range(mechanism.buckets)):
        is_one = Fraction(int(bit == value))
        truth = is_one * (1 - flip) + (1 - is_one) * flip
        seen = [out >> bit & 1 for each, out in zip(values, shown, strict=True) if each == value]
        of_one, of_zero = (prod(rate if out else 1 - rate for out in seen) for rate in (q, p))
        found *= truth * of_one + (1 - truth) * of_zero
    return found


def worst(likelihood, mechanism, values, outputs, reports, of_pattern: bool) -> float:
    """Largest loss of n reports of any two sequences of values, or only of two that change alike."""
    sequences = list(product(range(values), repeat=reports))
    largest = Fraction(1)
    for shown in product(range(outputs), repeat=reports):
        found = [(likelihood(mechanism, each, shown), pattern(each)) for each in sequences]
        groups = {each for _, each in found} if of_pattern else {()}
        for group in groups:
            some = [chance for chance, each in found if each == group or not of_pattern]
            largest = max(largest, max(some) / min(some))
    return log(largest)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon_inf", "epsilon_one"), [(4.0, 1.0), (2.0, 1.5), (1.0, 0.25)])
@pytest.mark.parametrize("reports", [1, 2, 3])
def test_longitudinal_krr_is_bounded_whatever_the_values_do(
    epsilon_inf: float, epsilon_one: float, reports: int
) -> None:
    """All pairs of sequences of three values; also those of which one changes and the other does not."""
    mechanism = LongitudinalKRR.from_epsilons(3, epsilon_inf, epsilon_one)
    exact = worst(krr_likelihood, mechanism, 3, 3, reports, of_pattern=False)
    bound = costs(changing(mechanism), reports, 1e-12, memoized=True)["basic"]
    assert exact - ROUNDING <= bound <= exact * 1.7
    if reports == 1:
        assert bound == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("f", "p", "q"), [(0.25, 0.35, 0.65), (0.5, 0.1, 0.6), (0.75, 0.05, 0.9)])
@pytest.mark.parametrize("reports", [1, 2, pytest.param(3, marks=pytest.mark.nightly)])
def test_rappor_is_bounded_if_it_is_known_when_values_change(
    f: float, p: float, q: float, reports: int
) -> None:
    """All pairs of sequences of three one-hot values that change alike; the bound is attained."""
    mechanism = HotRappor.from_probabilities(3, 1, f, p, q)
    exact = worst(bits_likelihood, mechanism, 3, 8, reports, of_pattern=True)
    bound = costs(changing(mechanism), reports, 1e-6, memoized=True)
    assert set(bound.values()) == {bound["exact"]}
    assert exact - ROUNDING <= bound["exact"] <= exact + ROUNDING


def test_rappor_that_hides_when_values_change_has_no_such_bound() -> None:
    """So the condition is stated: whether two values are equal is seen in every bit."""
    mechanism = HotRappor.from_probabilities(4, 1, 0.25, 0.05, 0.95)
    bound = costs(changing(mechanism), 2, 1e-6, memoized=True)["exact"]
    shown = (0b0010, 0b0010)
    same, other = (bits_likelihood(mechanism, each, shown) for each in ((1, 1), (0, 2)))
    assert log(same / other) > bound * 1.02


def test_three_values_of_thirty_reports_each_are_not_understated() -> None:
    """Their permanent responses are three independent draws, so they cost up to three times one."""
    krr = LongitudinalKRR.from_epsilons(4, 4.0, 1.0)
    one = costs(krr, 30, 1e-6, memoized=True)["exact"]
    assert costs(changing(krr), 90, 1e-6, memoized=True)["exact"] >= 3 * one > 11.999
    bloom = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    one = costs(bloom, 30, 1e-6, memoized=True)["basic"]
    assert costs(changing(bloom), 90, 1e-6, memoized=True)["exact"] >= 3 * one > 23.35


@pytest.mark.slow
@pytest.mark.parametrize("budget", [0.5, 1.9, 4.0, 8.0, 11.9, 16.1])
@pytest.mark.parametrize(
    "mechanism",
    [
        LongitudinalKRR.from_epsilons(4, 4.0, 1.0),
        LongitudinalHash.from_epsilons(4.0, 1.0),
        HotRappor.from_probabilities(3, 1, 0.5, 0.25, 0.75),
        Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65),
    ],
)
def test_allowed_reports_are_the_most_that_keep_within_a_budget(mechanism, budget: float) -> None:
    free = changing(mechanism)
    allowed = allowed_reports(free, budget, 1e-6, memoized=True)["exact"]
    if allowed is None:
        assert free.epsilon_inf <= budget * (1 + 1e-6)
        return
    assert allowed == 0 or costs(free, allowed, 1e-6, memoized=True)["exact"] <= budget
    assert costs(free, allowed + 1, 1e-6, memoized=True)["exact"] > budget


def test_as_many_permanent_responses_as_a_client_has_values() -> None:
    krr = LongitudinalKRR.from_epsilons(5, 2.0, 1.0)
    assert changing(krr) == ChangingBuckets(krr, 5)
    hashed = LongitudinalHash.from_epsilons(2.0, 1.0, None, 7)
    assert changing(hashed, 2) == ChangingBuckets(hashed.response, 3)
    assert changing(hashed, 0) == hashed.response
    one_hot, sets = (HotRappor.from_probabilities(6, hot, 0.5, 0.25, 0.75) for hot in (1, 2))
    assert changing(one_hot) == ChangingResponses(one_hot, 6)
    assert changing(sets) == ChangingResponses(sets, None)


def test_a_large_domain_is_accounted_for_quickly() -> None:
    krr = LongitudinalKRR.from_epsilons(1_400_000, 4.0, 1.0)
    found = allowed_reports(changing(krr), 100.0, 1e-6, memoized=True)["exact"]
    assert found is not None
    assert costs(changing(krr), found, 1e-6, memoized=True)["exact"] <= 100.0
