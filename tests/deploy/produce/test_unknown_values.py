"""How many values a collection does not list, in coarse words."""

from collections.abc import Sequence
from typing import Any

import pytest

from deploy.produce.unknown_values import UnknownValues, unknown_in
from estimators.collection import Collection, Field, pair_labels
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor

LISTED = Collection("plan", KRR.from_epsilon(3, 1.0), values=("free", "team"), other=True)
NUMBERS = Collection("age", KRR.from_epsilon(100, 1.0))
HOT = Collection("meals", HotRappor.from_probabilities(2, 2, 0.5, 0.25, 0.75), values=("a", "b"))
PAIR = Field("carrier", ("AA",), True), Field("origin", ("JFK",), True)
ROUTE = Collection("route", PairKRR.from_epsilons(2, 2, 1.0, 1.0), pair_labels(*PAIR), fields=PAIR)
BLOOM = Collection("site", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65))


@pytest.mark.parametrize(
    ("collection", "values", "unknown"),
    [
        (LISTED, ["free", "team", "Free", ""], 2),
        (NUMBERS, [0, 99, 100, -1, 10**30], 3),
        (HOT, [["a"], ["a", "b"], ["a", "c"], []], 1),
        (BLOOM, ["anything"], 0),
        (ROUTE, [("AA", "JFK"), ("AA", "x"), ("x", "JFK"), ("(other)", "JFK")], 3),
    ],
)
def test_values_that_are_not_listed_are_counted(collection: Collection, values: Any, unknown: int) -> None:
    assert unknown_in(collection, values) == unknown


@pytest.mark.parametrize(
    ("batches", "word"),
    [
        ([["free"] * 100], "none"),
        ([["free"] * 96, ["x"] * 4], "a few (less than 5 %)"),
        ([["free"] * 95, ["x"] * 5], "many"),
        ([["free"] * 51, ["x"] * 49], "many"),
        ([["free"] * 50, ["x"] * 50], "most"),
    ],
)
def test_words_are_coarse(batches: Sequence[list[str | int | list[str]]], word: str) -> None:
    shown = UnknownValues(LISTED, "plan", is_shown=True, is_strict=False)
    hidden = UnknownValues(LISTED, "plan", is_shown=False, is_strict=False)
    for batch in batches:
        shown.note(batch)
        hidden.note(batch)
    assert shown.summary() == f"values that plan does not list: {word}"
    assert hidden.summary() is None


def test_nothing_is_said_where_any_text_is_a_value() -> None:
    shown = UnknownValues(BLOOM, "site", is_shown=True, is_strict=True)
    shown.note(["anything"])
    assert shown.summary() is None
