"""What looks like a number and is none is named by its reason, but only where a number is asked for."""

from typing import Any

import pytest

from deniable.deploy.produce.input.batches import PRINTED_LINES, InputBatches
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.values import value_reader
from deniable.deploy.produce.unknown.near_numbers import doubt_of, why_no_number
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.deploy.input_fakes import Pieces
from tests.support.messages import PinMessages

SIZED = Collection("age", KRR.from_epsilon(100, 1.0))
WAIT = Collection("wait", SquareWave.from_epsilon(0.0, 10.0, 8, 1.0))
LEVEL = Collection("level", KRR.from_epsilon(3, 1.0), values=("0", "1", "1,5"))
PLAN = Collection("plan", KRR.from_epsilon(2, 1.0), values=("free", "team"))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("1,5", "comma"),
        ("-1.000,00", "comma"),
        ("1,000", "comma"),
        ("1 000", "thousands"),
        ("1\u202f000", "thousands"),
        ("1'000.5", "thousands"),
        ("1_000", "thousands"),
        ("1.000.000", "thousands"),
        ("$5", "currency"),
        ("5,00 €", "currency"),
        ("EUR 5", "currency"),
        ("5 %", "percent"),
        ("5 Euro", "currency"),
        ("1,5e3", "comma"),
        ("(5)", "sign"),
        ("5-", "sign"),
        ("\u22125", "sign"),
        ("\uff11\uff12", "digits"),
        ("\u00bd", "digits"),
        ("0x10", "decimal"),
        ("0b0", "decimal"),
    ],
)
def test_what_looks_like_a_number_has_a_reason(text: str, word: str) -> None:
    assert word in why_no_number(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "abc",
        "A1",
        "B-52",
        "2024-01-01",
        "12:30",
        "1.2.3",
        "5 kg",
        "10.0.0.1",
        "m\u00b2",
        "0xg",
        "(a)",
        "NaN",
        "inf",
        "-",
        "1" * 50 + ",5",
    ],
)
def test_other_texts_have_none(text: str) -> None:
    assert why_no_number(text) == ""


@pytest.mark.parametrize(
    ("collection", "value", "is_doubted"),
    [
        (SIZED, "1,5", True),
        (WAIT, "1,5", True),
        (WAIT, "99", False),
        (LEVEL, "2,5", True),
        (LEVEL, "1,5", False),
    ],
)
def test_only_values_that_are_not_known_are_doubted(
    collection: Collection, value: Any, is_doubted: bool
) -> None:
    doubt = doubt_of(collection)
    assert doubt is not None
    assert bool(doubt(value)) == is_doubted


def test_where_no_number_is_asked_for_nothing_is_doubted() -> None:
    assert doubt_of(PLAN) is None


def test_the_first_lines_are_named_by_number_and_reason(
    capsys: pytest.CaptureFixture[str], pin_messages: PinMessages
) -> None:
    feed = InputBatches("csv", "age", None, value_reader(SIZED), doubt=doubt_of(SIZED))
    lines = ["7", '"7,5"', "$8", "abc", *['"9,5"'] * 5]
    (batch,) = feed.batches(Pieces([("age\n" + "\n".join(lines)).encode()]), Place())
    assert len(batch.values) == len(lines)
    said = capsys.readouterr().err
    assert said.count("\n") == PRINTED_LINES
    assert not any(digits in said for digits in ("7,5", "$8", "9,5"))
    pin_messages({"commas and a currency": lambda: said})
