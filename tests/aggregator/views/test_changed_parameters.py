"""What is said of a change of parameters, and when shares before and after it mean the same."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from deniable.aggregator.records.estimate import EstimateRecord, NumberMean
from deniable.aggregator.views.changed_parameters import difference_of, joined, why_not_comparable
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, PLACE, changed, estimate_of

LISTED_ALONE = "the lists differ, and without `other` a share is one of listed values alone"
REFUSED = "one takes values that are not listed, the other refuses them"
LONGER = replace(FRUIT, mechanism=KRR.from_epsilon(5, 2.0), values=("apple", "fig", "kiwi", "lime"))
STRICT = replace(FRUIT, mechanism=KRR.from_epsilon(3, 2.0), other=False)


@pytest.mark.parametrize(
    ("record", "difference", "reason"),
    [
        (changed(estimate_of(), epsilon=1.0), "epsilon 1 to 2", ""),
        (changed(estimate_of(), epsilon=1.00000049), "epsilon 1.00001 to 2", ""),  # up, not to nearest
        (changed(estimate_of(), window_end=estimate_of().window_start + 60), "window_seconds 60 to 10", ""),
        (estimate_of(LONGER), "only then: lime", ""),
        (
            changed(estimate_of(), values=["apple", "fig", "pear"]),
            "only then: pear; only now: kiwi",
            "",
        ),
        (
            changed(estimate_of(), values=["apple", "fig", "pear"], other=None),
            "only then: pear; only now: kiwi",
            LISTED_ALONE,
        ),
        (changed(estimate_of(), values=["apple", "fig", "pear"], omitted=3), "only then: pear", ""),
        (estimate_of(STRICT), "other parameters of the mechanism", REFUSED),
        (changed(estimate_of(), mechanism="number"), "mechanism number to k-rr", "a report has another form"),
        (estimate_of(), "other parameters of the mechanism", ""),
    ],
    ids=[
        "epsilon",
        "rounded up",
        "window",
        "list",
        "lists",
        "strict lists",
        "unknown",
        "strict",
        "form",
        "nothing named",
    ],
)
def test_change_is_said_and_judged(record: EstimateRecord, difference: str, reason: str) -> None:
    assert difference_of(record, FRUIT) == difference
    assert why_not_comparable(record, FRUIT) == reason


def test_list_without_other_now_is_not_comparable_with_another_one() -> None:
    record = changed(estimate_of(), values=["apple", "fig", "pear"])
    assert why_not_comparable(record, STRICT) == LISTED_ALONE


def test_long_lists_are_cut() -> None:
    record = changed(estimate_of(PLACE), values=[f"v{i}" for i in range(3)], omitted=1)
    assert difference_of(record, PLACE) == "only then: v0, v1, v2"
    many = [f"v{i}" for i in range(8)]
    columns = dict.fromkeys(("frequency", "count", "std_error", "low", "high"), [0.1] * 8)
    long = changed(estimate_of(), values=many, significant=[True] * 8, omitted=1, **columns)
    assert difference_of(long, FRUIT) == "only then: v0, v1, v2, v3, v4 and 3 more"


def test_values_of_one_list_are_estimated_from_its_side() -> None:
    """Each keeps its share and error. What the present record leaves out is not taken for a former value."""
    ours, other = estimate_of(), changed(estimate_of(), values=["a", "b", "kiwi"], unbiased=[-0.1, 0.2, 0.3])
    found = joined(ours, other)
    assert found.values == ["apple", "fig", "kiwi", "a", "b"]
    assert found.unbiased[:2] == ours.unbiased[:2]
    assert (found.frequency[3:], found.std_error[3:]) == ([0.0, 0.2], other.std_error[:2])
    assert found.unbiased[2] not in (ours.unbiased[2], 0.3)
    cut = joined(changed(ours, omitted=1), other, frozenset(["apple", "b"]))
    assert cut.values == ["apple", "fig", "kiwi", "a"]


def test_estimate_without_any_error_adds_nothing() -> None:
    ours, without_errors = estimate_of(), changed(estimate_of(), std_error=[None] * 3)
    assert joined(ours, without_errors) == ours


VALUES, FALSE_ALARM = 20_000, 1e-6


def rare(epsilon: float, reports: int, seed: int) -> EstimateRecord:
    """An estimate of many values that nobody has: each is a run of its own of k-RR with 16 values."""
    inversion = Inversion.of_symmetric(KRR.from_epsilon(16, epsilon))
    counts = np.random.default_rng(seed).binomial(reports, inversion.miss, VALUES)
    found = inversion.frequency(counts / reports)
    shares, errors = np.clip(found, 0, 1).tolist(), inversion.std_error(found, reports).tolist()
    columns = dict.fromkeys(("frequency", "count", "low", "high"), shares) | {"std_error": errors}
    names = [f"v{place}" for place in range(VALUES)]
    return changed(
        estimate_of(), values=names, significant=[False] * VALUES, unbiased=found.tolist(), **columns
    )


@pytest.mark.slow
def test_joined_share_of_a_rare_value_is_unbiased() -> None:
    """The mean error of 20,000 values, over a change of epsilon, is that of the noise: 1e-6 false alarms.

    Shares that were clipped before they are joined, as of records without `unbiased`, are half a standard
    deviation too high or more, and fail it.
    """
    former, ours = rare(1.0, 40_000, 3), rare(2.0, 10_000, 4)
    found = joined(ours, former)
    bound = -ndtri(FALSE_ALARM / 2) / math.sqrt(VALUES) + 0.02  # weights depend on shares a little
    shares = np.array(found.unbiased)
    assert abs(shares.mean()) <= bound * shares.std()
    assert found.frequency == np.clip(shares, 0, 1).tolist()
    assert min(found.low) == 0
    older = joined(*(changed(each, unbiased=[]) for each in (ours, former)))
    assert np.mean(older.frequency) > 0.5 * np.std(older.frequency) > bound * np.std(older.frequency)


def test_steps_of_a_number_are_not_joined() -> None:
    """They are smoothed, so a mean of them is biased; the roll-up joins the mean of a number alone."""
    ours = changed(estimate_of(), mean=NumberMean(1.0, 0.1, 0.8, 1.2))
    assert joined(ours, changed(ours, epsilon=1.0)) == ours
