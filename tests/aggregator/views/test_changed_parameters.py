"""What is said of a change of parameters, and when shares before and after it mean the same."""

from dataclasses import replace

import pytest

from aggregator.records.estimate import EstimateRecord
from aggregator.views.changed_parameters import difference_of, joined, why_not_comparable
from estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, PLACE, changed, estimate_of

LISTED_ALONE = "the lists differ, and without `other` a share is one of listed values alone"
LONGER = replace(FRUIT, mechanism=KRR.from_epsilon(5, 2.0), values=("apple", "fig", "kiwi", "lime"))
STRICT = replace(FRUIT, mechanism=KRR.from_epsilon(3, 2.0), other=False)


@pytest.mark.parametrize(
    ("record", "difference", "reason"),
    [
        (changed(estimate_of(), epsilon=1.0), "epsilon 1 to 2", ""),
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
        (changed(estimate_of(), mechanism="number"), "mechanism number to k-rr", "a report has another form"),
        (estimate_of(), "other parameters of the mechanism", ""),
    ],
    ids=["epsilon", "window", "list", "lists", "strict lists", "unknown", "form", "nothing named"],
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


def test_windows_without_a_common_value_stay_apart() -> None:
    ours, other = estimate_of(), changed(estimate_of(), values=["a", "b", "c"])
    assert joined(ours, other) == ours
    without_errors = changed(estimate_of(), std_error=[None] * 3)
    assert joined(ours, without_errors) == ours
