"""A value of any type becomes one that can be sent: whether a report leaves does not depend on it."""

import pytest

from deniable.deploy.produce.input.csv_records import CsvRecords
from deniable.deploy.produce.input.json_lines import json_records
from deniable.deploy.produce.input.lines import Lines
from deniable.deploy.produce.input.values import (
    NO_INTEGER,
    integer,
    takes_several,
    text,
    texts,
    value_reader,
    written_integer,
)
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor

NOISE = (0.5, 0.25, 0.75)


@pytest.mark.parametrize(
    ("found", "as_text", "as_integer", "as_texts"),
    [
        ("AA", "AA", -1, ["AA"]),
        (1, "1", 1, ["1"]),
        (True, "true", -1, ["true"]),
        (None, "null", -1, ["null"]),
        (1.0, "1.0", -1, ["1.0"]),
        (["AA", "B6"], '["AA","B6"]', -1, ["AA", "B6"]),
        (["AA", 1, None], '["AA",1,null]', -1, ["AA", "1", "null"]),
        ([], "[]", -1, []),
    ],
)
def test_value_of_another_type_is_an_unknown_one(
    found: object, as_text: str, as_integer: int, as_texts: list[str]
) -> None:
    assert (text(found), integer(found), texts(found)) == (as_text, as_integer, as_texts)


def test_digits_are_an_integer() -> None:
    """As they are in files; what Python alone takes for one, or what is none without a guess, is not."""
    taken = {"3": 3, "-4": -4, " 5 ": 5, "+6": 6, "007": 7, "\t8\r": 8}
    assert {written: written_integer(written) for written in taken} == taken
    for written in ("", " ", "abc", "1e3", "7.0", "7_0", "0x7", "- 7", "7 0", "\uff17", "\u0667", "9" * 5000):
        assert written_integer(written) == NO_INTEGER, written


@pytest.mark.parametrize(
    ("collection", "from_csv", "from_json"),
    [
        (Collection("a", KRR.from_epsilon(3, 1.0)), written_integer, integer),
        (Collection("a", LongitudinalKRR.from_epsilons(3, 2.0, 1.0)), written_integer, integer),
        (Collection("a", KRR.from_epsilon(2, 1.0), values=("x", "y")), text, text),
        (Collection("a", Rappor.from_probabilities(8, 1, 1, *NOISE)), text, text),
        (Collection("a", HotRappor.from_probabilities(3, 1, *NOISE), values=("x", "y", "z")), text, text),
        (Collection("a", HotRappor.from_probabilities(3, 2, *NOISE), values=("x", "y", "z")), texts, texts),
    ],
)
def test_a_collection_says_what_its_values_are(
    collection: Collection, from_csv: object, from_json: object
) -> None:
    assert value_reader(collection, "csv") is from_csv
    assert value_reader(collection, "jsonl") is from_json
    assert takes_several(collection) == (from_csv is texts)


@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", "9" * 5000, '"\\ud800"', '["\\udc80", 1e999]', '{"a": "\\ud800"}']
)
def test_no_json_value_skips_its_line(value: str) -> None:
    """Numbers beyond floats, and texts that no UTF-8 holds."""
    (record,) = json_records(Lines(iter([f'{{"v": {value}}}\n'.encode(), b""]).__next__))
    assert record is not None
    assert not record.fault
    assert record.fields is not None
    assert isinstance(text(record.fields["v"]), str)
    assert integer(record.fields["v"]) == NO_INTEGER
    assert texts(record.fields["v"])


def test_field_may_be_as_long_as_a_line() -> None:
    data = b"v\n" + b"x" * 500_000 + b"\n"
    records = list(CsvRecords(["v"]).records(Lines(iter([data, b""]).__next__)))
    assert [record.fault for record in records if record] == ["", ""]
