"""What reports of values that change cost: against all sequences of buckets, in exact fractions."""

from fractions import Fraction
from itertools import product
from math import prod

import pytest

from deniable.estimators.accounting.accountant import BOUNDS, allowed_reports, costs, epsilon_inf
from deniable.estimators.accounting.changing_buckets import ChangingBuckets, hashed_subject
from deniable.estimators.mechanisms.directed_rounding import log_above
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from tests.estimators.mechanisms.test_longitudinal_krr import exact_channel, within

DELTA = 1e-6
CASES = [(2, 3), (3, 3)]


def hashed(buckets: int, epsilon_inf: float = 1.0, epsilon_one: float = 0.6) -> LongitudinalHash:
    return LongitudinalHash.from_epsilons(epsilon_inf, epsilon_one, hash_buckets=buckets)


def law(sequence, permanent, outputs):
    """Probabilities of the permanent responses that a sequence of buckets shows, in this order."""
    found = []
    for shown in outputs:
        of_bucket: dict[int, int] = {}
        is_one = all(of_bucket.setdefault(b, r) == r for b, r in zip(sequence, shown, strict=True))
        found.append(prod(permanent[b][r] for b, r in of_bucket.items()) if is_one else Fraction(0))
    return found


def reports_law(sequence, mechanism, outputs):
    """Probabilities of reports, over all permanent responses of all buckets."""
    g = mechanism.hash_buckets
    first, second = exact_channel(mechanism.permanent), exact_channel(mechanism.instantaneous)
    responses = list(product(range(g), repeat=g))
    weights = [prod(first[b][r] for b, r in enumerate(each)) for each in responses]
    return [
        sum(
            weight * prod(second[each[b]][y] for b, y in zip(sequence, shown, strict=True))
            for weight, each in zip(weights, responses, strict=True)
        )
        for shown in outputs
    ]


def pattern(sequence):
    """Which of its places are equal."""
    return [sequence.index(each) for each in sequence]


def worst(ours, theirs):
    """The largest ratio of probabilities; None if it is unbounded."""
    if any(a and not b for a, b in zip(ours, theirs, strict=True)):
        return None
    return max(a / b for a, b in zip(ours, theirs, strict=True) if b)


@pytest.mark.parametrize(("buckets", "times"), CASES)
def test_permanent_responses_cost_epsilon_inf_for_each_bucket_that_differs(buckets, times):
    """All pairs of sequences, their permanent responses seen: unbounded unless they change at the same times.

    A constant bucket shows equal responses with certainty, and others by chance; so the bound g epsilon_inf
    holds only for sequences with one pattern of changes, and there it is attained by d epsilon_inf.
    """
    mechanism = hashed(buckets)
    permanent = exact_channel(mechanism.permanent)
    ratio = max(permanent[0][r] / permanent[b][r] for b in range(buckets) for r in range(buckets))
    outputs = list(product(range(buckets), repeat=times))
    laws = {each: law(each, permanent, outputs) for each in outputs}
    most = 0
    for x, y in product(outputs, repeat=2):
        found = worst(laws[x], laws[y])
        if pattern(x) != pattern(y):
            splits = any(x[i] != x[j] and y[i] == y[j] for i in range(times) for j in range(i))
            assert (found is None) == splits
            assert splits or worst(laws[y], laws[x]) is None
            continue
        differing = len({(a, b) for a, b in zip(x, y, strict=True) if a != b})
        most = max(most, differing)
        # Words that multiply-shift divides unevenly make some of the other values rarer by 2^-64.
        assert found <= ratio**differing
        assert found > ratio**differing * (1 - Fraction(1, 2**50))
        assert differing == 0 or within(found, mechanism.epsilon_inf * differing * (1 + 2**-50))
    assert most == buckets
    assert within(ratio**buckets, mechanism.epsilon_of_all_buckets)


@pytest.mark.slow
@pytest.mark.parametrize(("buckets", "times"), [(2, 1), (2, 2), (2, 4), (3, 2), (3, 3)])
def test_reports_of_any_sequences_cost_no_more_than_stated(buckets, times):
    """All pairs of sequences, whenever they change; n epsilon_one would be too little."""
    mechanism = hashed(buckets)
    outputs = list(product(range(buckets), repeat=times))
    laws = [reports_law(each, mechanism, outputs) for each in outputs]
    exact = log_above(max(worst(ours, theirs) for ours in laws for theirs in laws))
    stated = hashed_subject(mechanism).largest_of(times)
    assert exact <= stated <= exact * (1 + 1e-9 if times == 1 else 1.25)
    assert stated <= hashed_subject(mechanism).loss(times).largest
    assert exact >= times * mechanism.epsilon_one * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilons", "buckets", "times", "changes", "factor"),
    [
        ((4.0, 2.0), 2, 4, 1, 1.003),
        pytest.param((4.0, 3.6), 3, 3, 2, 1.029, marks=pytest.mark.nightly),
        pytest.param((2.0, 1.0), 3, 3, 2, 1.065, marks=pytest.mark.nightly),
        ((1.0, 0.9), 3, 3, 2, 1.202),
        pytest.param((1.0, 0.9), 3, 3, 1, 1.359, marks=pytest.mark.nightly),
        pytest.param((0.5, 0.1), 2, 4, 1, 1.277, marks=pytest.mark.nightly),
        pytest.param((0.25, 0.125), 3, 3, 1, 1.831, marks=pytest.mark.nightly),
        ((0.02, 0.01), 3, 3, 1, 2.390),
    ],
)
def test_bound_is_above_the_exact_cost_by_a_known_factor(epsilons, buckets, times, changes, factor):
    """Sequences in at most changes + 1 buckets. The bound is near for large epsilons, far for small ones."""
    mechanism = hashed(buckets, *epsilons)
    outputs = list(product(range(buckets), repeat=times))
    laws = [reports_law(each, mechanism, outputs) for each in outputs if len(set(each)) <= changes + 1]
    exact = log_above(max(max(column) / min(column) for column in zip(*laws, strict=True)))
    stated = hashed_subject(mechanism, changes).largest_of(times)
    assert stated >= exact
    assert stated / exact == pytest.approx(factor, abs=2e-3)


@pytest.mark.parametrize("buckets", [2, 3])
@pytest.mark.parametrize("delta", [0.01, 0.1])
def test_delta_holds_for_any_two_sequences_of_two_reports(buckets, delta):
    mechanism = hashed(buckets)
    outputs = list(product(range(buckets), repeat=2))
    laws = [[float(each) for each in reports_law(x, mechanism, outputs)] for x in outputs]
    for epsilon in costs(mechanism, 2, delta, memoized=True).values():
        factor = 2.718281828459045**epsilon
        beyond = [sum(max(0, a - factor * b) for a, b in zip(x, y, strict=True)) for x in laws for y in laws]
        assert max(beyond) <= delta


def test_costs_rise_to_that_of_the_permanent_responses():
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    found = [costs(mechanism, reports, DELTA, memoized=True) for reports in (1, 2, 3, 10, 1000)]
    for name in BOUNDS:
        rising = [each[name] for each in found]
        assert rising == sorted(rising)
        assert rising[-1] <= epsilon_inf(mechanism, True) == mechanism.epsilon_of_all_buckets
    assert found[0]["basic"] == mechanism.epsilon_one
    assert 2 * mechanism.epsilon_one < found[1]["basic"] < 2 * mechanism.instantaneous.epsilon
    assert found[-1]["basic"] == mechanism.epsilon_of_all_buckets


def test_budget_allows_what_it_costs():
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    for name, allowed in allowed_reports(mechanism, 4.6, DELTA, memoized=True).items():
        assert allowed is not None
        assert costs(mechanism, max(allowed, 1), DELTA, memoized=True)[name] <= 4.6 or allowed == 0
        assert costs(mechanism, allowed + 1, DELTA, memoized=True)[name] > 4.6
    assert set(allowed_reports(mechanism, 6.0, DELTA, memoized=True).values()) == {None}


def test_changes_limit_the_buckets():
    mechanism = LongitudinalHash.from_epsilons(4.0, 2.0)
    assert hashed_subject(mechanism, 0) == mechanism.response
    assert hashed_subject(mechanism, 2) == ChangingBuckets(mechanism.response, 3)
    assert hashed_subject(mechanism, 6) == hashed_subject(mechanism, 100) == hashed_subject(mechanism)
    assert epsilon_inf(hashed_subject(mechanism, 2), True) == pytest.approx(3 * mechanism.epsilon_inf)
    with pytest.raises(ValueError, match="changes"):
        hashed_subject(mechanism, -1)


def test_reports_that_are_not_memoized_are_those_of_longitudinal_krr():
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0)
    expected = costs(mechanism.response, 5, DELTA)
    assert costs(mechanism, 5, DELTA) == costs(hashed_subject(mechanism), 5, DELTA) == expected
    assert isinstance(mechanism.permanent, KRR)
