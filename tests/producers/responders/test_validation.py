"""Arguments are checked for types and numbers, and no message shows their content."""

import array
import math
from functools import partial

import numpy as np
import pytest

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.responders.buckets import Buckets
from deniable.producers.responders.validation import (
    clients_of,
    different_texts,
    integers,
    text_sets,
    texts,
    window_starts,
)
from deniable.protocol.wire import MAX_WINDOW_START
from tests.support.messages import PinMessages
from tests.support.producers.sources import ScriptedWords

CANARY = "canary-7391"
CARRIER = Collection("carrier", KRR.from_epsilon(3, 1.0), values=("AA", "B6", "9E"))
CARRIER_OTHER = Collection("carrier", KRR.from_epsilon(4, 1.0), values=("AA", "B6", "9E"), other=True)
LATENCY = Collection("latency", KRR.from_epsilon(100, 1.0))
LATENCY_OTHER = Collection("latency", KRR.from_epsilon(101, 1.0), other=True)


@pytest.mark.parametrize(
    "given", [["AA", "B6"], ("AA", "B6"), np.array(["AA", "B6"]), np.array(["AA", "B6"], object)]
)
def test_texts_of_many(given):
    assert texts("values", given) == ["AA", "B6"]


def test_distinct_texts_keep_their_order():
    different, number = different_texts("values", ["B6", "AA", "B6", "", "AA"])
    assert different == ["B6", "AA", ""]
    assert number.tolist() == [0, 1, 0, 2, 1]


def test_list_is_copied():
    """A batch is randomized in parts, and another thread may change the list meanwhile."""
    given = ["ann", "bob"]
    for taken in (texts("values", given), clients_of(given, 2)):
        given.append("cid")
        assert taken == ["ann", "bob"]
        given.pop()


def test_one_text():
    assert texts("values", "AA") == ["AA"]
    assert texts("values", np.array(["AA"])[0]) == ["AA"]
    assert texts("values", []) == []


def test_messages_about_texts(pin_messages: PinMessages) -> None:
    given = {
        "an item is bytes": ["9E", 9, None, b"9E"],
        "items are of two other types": ["9E", ["9E"], {}],
        "an array with a dict": np.array(["9E", None, {}], object),
        "bytes": b"7391",
        "a dict": {CANARY: 1},
        "a set": {CANARY},
        "an array of Python": array.array("i", [7]),
        "an array without dimensions": np.array(CANARY),
        "an array of two dimensions": np.array([[CANARY]]),
    }
    pin_messages({what: partial(texts, "values of carrier", each) for what, each in given.items()})
    for each in given.values():
        with pytest.raises(TypeError) as refused:
            texts("values of carrier", each)
        with pytest.raises(TypeError) as refused_of_different:
            different_texts("values of carrier", each)
        assert str(refused_of_different.value) == str(refused.value)


@pytest.mark.parametrize(
    "given",
    [
        [{"AA"}, ["B6", "9E", "B6"], (), frozenset()],
        ({"AA"}, ("B6", "9E", "B6"), [], set()),
        np.array([{"AA"}, ("B6", "9E", "B6"), [], set()], object),
    ],
)
def test_sets_of_texts(given):
    members, sizes = text_sets("values", given)
    assert members == ["AA", "B6", "9E", "B6"]
    assert sizes.tolist() == [1, 3, 0, 0]


def test_one_set_of_texts():
    members, sizes = text_sets("values", {"AA", "B6"})
    assert sorted(members) == ["AA", "B6"]
    assert sizes.tolist() == [2]
    assert text_sets("values", [])[1].tolist() == []


def test_messages_about_sets_of_texts(pin_messages: PinMessages) -> None:
    given = {
        "one of the sets is a text": ["AA", {"B6"}],
        "one of the sets is a number": [{"AA"}, None, 9],
        "a member is bytes": [{"AA", b"7391"}],
        "a text": CANARY,
        "a dict": {CANARY: 1},
    }
    pin_messages({what: partial(text_sets, "values of airports", each) for what, each in given.items()})


@pytest.mark.parametrize(
    "given", [[3, 2**70, -(2**70)], (3, 2**70, -(2**70)), [np.int64(3), 2**70, -(2**70)]]
)
def test_integers_of_many(given):
    assert integers("values", given).tolist() == [3, 2**63 - 1, -(2**63)]
    assert integers("values", [-1, 2**40]).tolist() == [-1, 2**40]
    assert integers("values", []).tolist() == []


def test_one_integer_and_an_array():
    assert integers("values", 3).tolist() == [3]
    assert integers("values", np.uint8(3)).tolist() == [3]
    array = np.arange(3, dtype=np.uint8)
    assert integers("values", array) is array


def test_messages_about_integers(pin_messages: PinMessages) -> None:
    given = {
        "an item is bytes": [1, "7391", None, b"7391"],
        "a complex number": 1j,
        "a set": {7391},
    }
    pin_messages({what: partial(integers, "values of latency", each) for what, each in given.items()})


def test_clients_are_one_text_for_each_value():
    assert clients_of(None, 2) is None
    assert clients_of("ann", 1) == ["ann"]
    assert clients_of(["ann", "bob"], 2) == ["ann", "bob"]
    assert clients_of(["ann", 7, 7.0], 3) == ["ann", "7", "7"]
    assert clients_of(np.array([7, 8]), 2) == ["7", "8"]


def test_messages_about_clients(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            "one client of two values": lambda: clients_of(CANARY, 2),
            "two clients of one value": lambda: clients_of([CANARY, CANARY], 1),
            "a client is a fraction": lambda: clients_of([7391.5], 1),
            "a client is missing": lambda: clients_of(["ann", None], 2),
            "a client is true": lambda: clients_of([True], 1),
            "a client is empty": lambda: clients_of([CANARY, CANARY, ""], 3),
        }
    )


@pytest.mark.parametrize("at", [119, 119.999, np.float64(119.5), [60, 119], np.array([60.0, 119.9])])
def test_window_starts(at):
    starts = window_starts(at, 2, 60)
    assert starts.dtype == np.int64
    assert starts.tolist() == [60, 60]


@pytest.mark.parametrize("at", [0, 0.1, 59, 60, 1767225599.999, 1767225600, float(MAX_WINDOW_START)])
def test_window_starts_are_those_of_the_collection(at):
    for seconds in (1, 7, 60, 3600):
        collection = Collection("carrier", CARRIER.mechanism, window_seconds=seconds)
        assert window_starts(at, 1, seconds).tolist() == [collection.window_start(at)]


def test_messages_about_times(pin_messages: PinMessages) -> None:
    given = {
        "below 0": -1,
        "little below 0": -0.001,
        "NaN": math.nan,
        "infinite": math.inf,
        "after the year 9999": MAX_WINDOW_START + 1,
        "one of two below 0": [60, -7391],
        "a text": "7391",
        "missing": None,
        "one of two missing": [None, 1],
        "a bool": True,
        "bytes": b"7391",
        "one time for two values": [1],
        "three times for two values": [1, 2, 3],
        "times in rows": [[1, 2]],
    }
    pin_messages({what: partial(window_starts, at, 2, 60) for what, at in given.items()})


def place(collection, values, *draws):
    buckets = Buckets(collection, collection.width)
    source = ScriptedWords(*draws)
    placed = buckets.place(buckets.settle(buckets.find(values)), source)
    assert source.is_used_up
    return placed.tolist(), buckets.unknown


def test_listed_values_have_their_index():
    assert place(CARRIER, ["9E", "AA", "B6"], [0, 0, 0]) == ([2, 0, 1], 0)


@pytest.mark.parametrize("values", [[0, 99, 5], np.array([0, 99, 5]), np.array([0, 99, 5], np.uint64)])
def test_integers_are_their_own_buckets(values):
    assert place(LATENCY, values, [0, 0, 0]) == ([0, 99, 5], 0)


def test_unknown_values_are_other():
    assert place(CARRIER_OTHER, ["ZZ", "AA", ""]) == ([3, 0, 3], 2)
    assert place(LATENCY_OTHER, [100, 99, -1]) == ([100, 99, 100], 2)


def test_unknown_values_without_other_are_a_uniform_bucket():
    third = 2**64 // 3
    assert place(CARRIER, ["ZZ"] * 4, [third, third + 1, 2 * third + 1, 2**64 - 1]) == ([0, 1, 2, 2], 4)


@pytest.mark.parametrize(
    "unknown", [[-1, 100], [2**70, -(2**70)], np.array([-1, 100]), np.array([2**64 - 1] * 2, "u8")]
)
def test_unknown_integers_of_any_size(unknown):
    assert place(LATENCY, unknown, [0, 2**64 - 1]) == ([0, 99], 2)


def test_values_do_not_change_the_drawn_words():
    for values in (["AA", "B6"], ["ZZ", "ZZ"]):
        place(CARRIER, values, [1, 2])
        place(CARRIER_OTHER, values)


def test_wrong_types_name_the_collection():
    with pytest.raises(TypeError, match="carrier"):
        Buckets(CARRIER, 3).find([b"9"])
    with pytest.raises(TypeError, match="latency"):
        Buckets(LATENCY, 100).find([b"9"])
    assert place(CARRIER, [], []) == ([], 0)
