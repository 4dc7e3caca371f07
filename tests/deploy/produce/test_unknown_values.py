"""How many values a collection does not list, in coarse words."""

from collections.abc import Sequence
from typing import Any

import pytest

from deploy.produce.input.source import FeedError
from deploy.produce.unknown_values import UnknownValues, unknown_in
from estimators.collection import Collection, Field, pair_labels
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.square_wave import SquareWave

LISTED = Collection("plan", KRR.from_epsilon(3, 1.0), values=("free", "team"), other=True)
NUMBERS = Collection("age", KRR.from_epsilon(100, 1.0))
HOT = Collection("meals", HotRappor.from_probabilities(2, 2, 0.5, 0.25, 0.75), values=("a", "b"))
PAIR = Field("carrier", ("AA",), True), Field("origin", ("JFK",), True)
ROUTE = Collection("route", PairKRR.from_epsilons(2, 2, 1.0, 1.0), pair_labels(*PAIR), fields=PAIR)
NUMBER = Collection("wait", SquareWave.from_epsilon(0.0, 10.0, 8, 1.0), memoize=False)
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


def test_numbers_beyond_the_range_are_not_called_unlisted(capsys: pytest.CaptureFixture[str]) -> None:
    shown = UnknownValues(NUMBER, "seconds", is_shown=True, is_strict=False)
    shown.note([-5.0, 2e9])
    assert capsys.readouterr().err == (
        "warning: most of the first values are no numbers in [0, 10], the range of wait; is --field seconds "
        "right? Numbers beyond it count as its nearest end, all else as a random step\n"
    )
    assert shown.summary() == "values that are no numbers in the range of wait: most"


@pytest.mark.parametrize(
    ("values", "is_shown", "asks"),
    [
        ([("AA", "x"), ("AA", "y")], True, "is --second-field where right?"),
        ([("x", "JFK"), ("y", "JFK")], True, "is --field who right?"),
        ([("x", "y")], True, "are --field who and --second-field where right?"),
        ([("x", "JFK"), ("AA", "y"), ("AA", "JFK")], True, "are --field who and --second-field where right?"),
        ([("AA", "x")], False, "are --field who and --second-field where right?"),
    ],
)
def test_the_option_of_the_unlisted_field_is_named_only_where_words_are_shown(
    values: Any, is_shown: bool, asks: str
) -> None:
    unknown = UnknownValues(ROUTE, "who", "where", is_shown=is_shown, is_strict=True)
    with pytest.raises(FeedError) as refused:
        unknown.note(values)
    assert str(refused.value) == (
        f"most of the first values are not listed for route; {asks} This run sent nothing"
    )


def test_nothing_is_said_where_any_text_is_a_value() -> None:
    shown = UnknownValues(BLOOM, "site", is_shown=True, is_strict=True)
    shown.note(["anything"])
    assert shown.summary() is None
