"""However a value is written, and by whichever way it comes, it means the same: one table for all of them.

Producers that deliver to an edge take values in the same ways; edges see randomized reports alone.
"""

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from deniable.deploy.produce.input.batches import InputBatches
from deniable.deploy.produce.input.resume import Place
from deniable.deploy.produce.input.values import value_reader
from deniable.deploy.produce.unknown.unknown_values import unknown_in
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.responders.buckets import UNKNOWN, Buckets
from deniable.producers.responders.pair import FieldBuckets
from deniable.producers.responders.single_value import value_rule
from deniable.producers.responders.validation import different_texts, numbers, text_sets
from tests.support.deploy.input_fakes import Pieces
from tests.support.edge.browser.node import Asked, asked
from tests.support.paths import REPOSITORY

Way = Callable[[Collection, Any], Any]

CASES = json.loads((REPOSITORY / "tests/support/producers/notations.json").read_text(encoding="utf-8"))
SIZED = Collection("sized", KRR.from_epsilon(10, 1.0))
NUMBER = Collection("number", SquareWave.from_epsilon(0.0, 10.0, 8, 1.0))
TEXT = Collection("text", LocalHash.from_epsilon(2.0))


def listed(values: list[str]) -> Collection:
    return Collection("listed", KRR.from_epsilon(len(values) + 1, 1.0), values=tuple(values), other=True)


def reported(collection: Collection, value: Any) -> Any:
    return value


def recorded(collection: Collection, value: Any) -> Any:
    rule = value_rule(collection)
    return value if type(value) is rule.exact else rule.checked(value)


def from_csv(collection: Collection, value: Any) -> Any:
    text = io.StringIO(newline="")
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([["v"], [value]])
    return read("csv", collection, text.getvalue())


def from_json(collection: Collection, value: Any) -> Any:
    return read("jsonl", collection, json.dumps({"v": value}) + "\n")


def read(layout: str, collection: Collection, text: str) -> Any:
    feed = InputBatches(layout, "v", None, value_reader(collection))
    (batch,) = feed.batches(Pieces([text.encode()]), Place())
    return batch.values[0]


def each_way(kind: str, *names: str) -> pytest.MarkDecorator:
    """Every value of the table by every way; a cell of CSV is a text."""
    return pytest.mark.parametrize(
        ("way", "given", *names),
        [
            pytest.param(way, given, *(case[name] for name in names))
            for case in CASES[kind]
            for given in case["given"]
            for way in (reported, recorded, from_csv, from_json)
            if way is not from_csv or isinstance(given, str)
        ],
    )


@each_way("listed", "values", "index")
def test_a_value_means_a_listed_one(way: Way, given: Any, values: list[str], index: int | None) -> None:
    collection = listed(values)
    value = way(collection, given)
    (found,) = Buckets(collection, collection.width).find([value])
    assert found == (UNKNOWN if index is None else index)
    assert unknown_in(collection, [value]) == (index is None)


@each_way("integers", "means")
def test_a_value_means_an_integer(way: Way, given: Any, means: int | None) -> None:
    value = way(SIZED, given)
    (found,) = Buckets(SIZED, SIZED.width).find([value])
    assert found == (UNKNOWN if means is None else means)
    assert unknown_in(SIZED, [value]) == (means is None)


@each_way("numbers", "means")
def test_a_value_means_a_number(way: Way, given: Any, means: Any) -> None:
    (found,) = numbers("values", [way(NUMBER, given)])
    assert math.isnan(found) if means is None else found == float(means)


@each_way("texts", "means")
def test_a_value_means_a_text(way: Way, given: Any, means: str) -> None:
    different, _ = different_texts("values", [way(TEXT, given)])
    assert different == [means]


def test_parts_of_a_pair_and_of_a_set_mean_what_one_value_does() -> None:
    level, flag = Field("level", ("1", "2"), True), Field("flag", ("true", "false"), True)
    pair = Collection(
        "pair", PairKRR.from_epsilons(3, 3, 1, 1), pair_labels(level, flag), fields=(level, flag)
    )
    hot = Collection("hot", HotRappor.from_probabilities(8, 2, 0.25, 0.25, 0.75), values=tuple("01234567"))
    for way in (reported, recorded):
        found = FieldBuckets(pair).find(
            [way(pair, each) for each in [(2, "True"), ("2.0", 0), ("2,0", None)]]
        )
        assert [each.tolist() for each in found] == [[1, 1, UNKNOWN], [0, 1, UNKNOWN]]
        members, _ = text_sets("values", [way(hot, [2, "2.0", True])])
        assert Buckets(hot, 8).find_texts(members).tolist() == [2, 2, 1]
    line = '{"v": [2.0, "2", true, "2,0"]}\n'
    members, _ = text_sets("values", [read("jsonl", hot, line)])
    assert Buckets(hot, 8).find_texts(members).tolist() == [2, 2, 1, UNKNOWN]


@pytest.fixture(scope="module")
def browser() -> Iterator[Asked]:
    with asked() as process:
        yield process


def test_browsers_take_values_as_python_does(browser: Asked) -> None:
    for case in CASES["listed"]:
        for given in case["given"]:
            answer = browser.ask("notation", values=case["values"], given=given)
            assert (answer["index"], given) == (-1 if case["index"] is None else case["index"], given)
    for kind, what in (("integers", "number"), ("numbers", "number"), ("texts", "text")):
        for case in CASES[kind]:
            for given in case["given"]:
                found = browser.ask("notation", given=given)[what]
                if kind == "integers" and (found == "inf" or found != (found and int(found))):
                    found = None  # `krr.js` takes integers alone
                assert (kind, given, found) == (kind, given, case["means"])
