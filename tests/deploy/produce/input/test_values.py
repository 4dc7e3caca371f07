"""A value of any type becomes one that can be sent: whether a report leaves does not depend on it."""

from collections import Counter
from typing import cast

import pytest

from deniable.config.settings.allowance import Allowance
from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.input.csv_records import CsvRecords
from deniable.deploy.produce.input.json_lines import json_records
from deniable.deploy.produce.input.lines import Lines
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.values import one, pair, several, takes_several, value_reader
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.opening.double import ProducerDouble
from deniable.producers.responders.validation import texts
from deniable.protocol.notation import is_value
from tests.support.deploy.input_fakes import Pieces

NOISE = (0.5, 0.25, 0.75)
FIELD = Field("a", ("x", "y"), False)


@pytest.mark.parametrize(
    ("found", "as_one", "as_several"),
    [
        ("AA", "AA", ["AA"]),
        (1, 1, [1]),
        (True, True, [True]),
        (None, None, [None]),
        (["AA", "B6"], '["AA","B6"]', ["AA", "B6"]),
        (["AA", 1, None, {"a": 1}], '["AA",1,null,{"a":1}]', ["AA", 1, None, '{"a":1}']),
        ([], "[]", []),
    ],
)
def test_value_of_another_type_is_its_json(found: object, as_one: object, as_several: object) -> None:
    assert (one(found), several(found), pair((found, found))) == (as_one, as_several, (as_one, as_one))


@pytest.mark.parametrize(
    ("collection", "reader"),
    [
        (Collection("a", KRR.from_epsilon(3, 1.0)), one),
        (Collection("a", KRR.from_epsilon(2, 1.0), values=("x", "y")), one),
        (Collection("a", Rappor.from_probabilities(8, 1, 1, *NOISE)), one),
        (Collection("a", HotRappor.from_probabilities(3, 1, *NOISE), values=("x", "y", "z")), one),
        (Collection("a", HotRappor.from_probabilities(3, 2, *NOISE), values=("x", "y", "z")), several),
        (
            Collection(
                "a", PairKRR.from_epsilons(2, 2, 1, 1), pair_labels(FIELD, FIELD), fields=(FIELD, FIELD)
            ),
            pair,
        ),
    ],
)
def test_a_collection_says_what_its_values_are(collection: Collection, reader: object) -> None:
    assert value_reader(collection) is reader
    assert takes_several(collection) == (reader is several)


def read_from(layout: str, data: bytes, collection: Collection) -> list[str]:
    """Return the texts that the producer is given of the field `level`."""
    feed = InputBatches(layout, "level", None, value_reader(collection))
    (batch,) = feed.batches(Pieces([data]), Place())
    return texts("values", batch.values)


@pytest.mark.parametrize("written", ["True", "01", "1.0", "true", "1"])
def test_notation_that_two_listed_values_share_means_the_same_wherever_it_comes_from(written: str) -> None:
    """Neither of the two, unless it is one of them: in files, programs and their tests."""
    collection = Collection("a", KRR.from_epsilon(4, 14.0), values=("1", "true", "x"), other=True)
    csv = read_from("csv", f"level,b\n{written},\n".encode(), collection)
    json = read_from("jsonl", b'{"level": "%b"}\n' % written.encode(), collection)
    double = ProducerDouble([Allowance(collection, None)])
    for _ in range(9):  # nearly all reports are true: 1 of 400,000 is not
        double.report("a", written, None)
    reports = [report for pack in double.packs for report in cast("list[str]", pack["reports"])]
    meant = written if written in collection.values else "(other)"
    assert csv == json == [written]
    assert Counter(reports).most_common(1) == [(meant, 9)]


@pytest.mark.parametrize(
    "mechanism",
    [
        LocalHash.from_epsilon(2.0),
        Rappor.from_probabilities(8, 1, 1, *NOISE),
        PrefixTree.from_epsilon((1, 2), 2.0),
    ],
)
def test_notation_of_a_candidate_is_the_same_in_csv_and_json_lines(mechanism: Mechanism) -> None:
    """One empty cell makes a tool write 1 as 1.0, which means the candidate that JSON's number means."""
    written = ["0.0", "1.0", "1", "4.0", "4e0", "true", "7.0", "x"]
    csv = ("user,level\n" + "".join(f"u{place},{each}\n" for place, each in enumerate(written))).encode()
    numbers = ["0.0", "1.0", "1", "4.0", "4e0", "true", "7.0", '"x"']
    rows = "".join(f'{{"level": {each}}}\n' for each in numbers).encode()
    collection = Collection("level", mechanism, candidates=("0", "1", "04"))
    assert read_from("csv", csv, collection) == ["0", "1", "1", "04", "04", "1", "7.0", "x"]
    assert read_from("jsonl", rows, collection) == ["0", "1", "1", "04", "04", "1", "7", "x"]
    assert value_reader(Collection("level", mechanism, candidates=("x",))) is one


@pytest.mark.parametrize(
    "value", ["1e999", "-1e999", "9" * 5000, '"\\ud800"', '["\\udc80", 1e999]', '{"a": "\\ud800"}']
)
def test_no_json_value_skips_its_line(value: str) -> None:
    """Numbers beyond floats, and texts that no UTF-8 holds."""
    (record,) = json_records(Lines(iter([f'{{"v": {value}}}\n'.encode(), b""]).__next__))
    assert record is not None
    assert not record.fault
    assert record.fields is not None
    assert all(map(is_value, [one(record.fields["v"]), *several(record.fields["v"])]))


def test_field_may_be_as_long_as_a_line() -> None:
    data = b"v\n" + b"x" * 500_000 + b"\n"
    records = list(CsvRecords(["v"]).records(Lines(iter([data, b""]).__next__)))
    assert [record.fault for record in records if record] == ["", ""]
