"""How many values a collection does not list, in coarse words."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from deniable.deploy.produce.input.source import FeedError
from deniable.deploy.produce.unknown.unknown_values import UnknownValues, unknown_in
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.messages import PinMessages

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
        (BLOOM, ["anything", "", None], 2),
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
    assert str(shown.summary()).endswith(f": {word}")
    assert hidden.summary() is None


def test_numbers_beyond_the_range_are_not_called_unlisted(
    capsys: pytest.CaptureFixture[str], pin_messages: PinMessages
) -> None:
    shown = UnknownValues(NUMBER, "seconds", is_shown=True, is_strict=False)
    shown.note([-5.0, 2e9])
    pin_messages(
        {"numbers beyond the range": lambda: capsys.readouterr().err, "at the end": lambda: shown.summary()}
    )


@pytest.mark.parametrize(
    ("values", "is_shown", "options"),
    [
        ([("AA", "x"), ("AA", "y")], True, ["--second-field where"]),
        ([("x", "JFK"), ("y", "JFK")], True, ["--field who"]),
        ([("x", "y")], True, ["--field who", "--second-field where"]),
        ([("x", "JFK"), ("AA", "y"), ("AA", "JFK")], True, ["--field who", "--second-field where"]),
        ([("AA", "x")], False, ["--field who", "--second-field where"]),
    ],
)
def test_the_option_of_the_unlisted_field_is_named_only_where_words_are_shown(
    values: Any, is_shown: bool, options: list[str]
) -> None:
    unknown = UnknownValues(ROUTE, "who", "where", is_shown=is_shown, is_strict=True)
    with pytest.raises(FeedError) as refused:
        unknown.note(values)
    assert re.findall(r"--[a-z-]+ \w+", str(refused.value)) == options


def test_messages(capsys: pytest.CaptureFixture[str], pin_messages: PinMessages) -> None:
    def note(collection: Collection, values: Any, is_strict: bool) -> str:
        unknown = UnknownValues(collection, "who", "where", is_shown=True, is_strict=is_strict)
        unknown.note(values)
        return capsys.readouterr().err

    pin_messages(
        {
            "one field of a pair, strictly": lambda: note(ROUTE, [("x", "JFK")], True),
            "both fields of a pair, strictly": lambda: note(ROUTE, [("x", "y")], True),
            "most values": lambda: note(LISTED, ["x", "y"], False),
            "most texts are missing": lambda: note(BLOOM, [None, None, "x"], False),
            "most texts are missing, strictly": lambda: note(BLOOM, [None, None], True),
        }
    )


def test_only_missing_values_are_said_where_any_text_is_a_value() -> None:
    """As of a field that no JSON line has."""
    shown = UnknownValues(BLOOM, "site", is_shown=True, is_strict=True)
    shown.note(["anything"])
    assert shown.summary() == "values that are missing or empty for site: none"
