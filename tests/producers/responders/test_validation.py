"""Arguments are checked for types and numbers, and no message shows their content."""

import array

import numpy as np
import pytest

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from producers.responders.buckets import Buckets
from producers.responders.validation import (
    clients_of,
    different_texts,
    integers,
    text_sets,
    texts,
    window_starts,
)
from producers.wire import MAX_WINDOW_START
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


@pytest.mark.parametrize(
    ("given", "types"),
    [
        (["9E", 9, None], "int"),
        ([float("inf")], "float"),
        ([b"9E"], "bytes"),
        (["9E", ["9E"], {}], "dict, list"),
        (np.array([7391]), "int"),
        (np.array(["9E", None, {}], object), "dict"),
    ],
)
@pytest.mark.parametrize("check", [texts, different_texts])
def test_other_than_text_is_refused_with_advice(given, types, check):
    with pytest.raises(TypeError) as caught:
        check("values of carrier", given)
    assert str(caught.value) == (
        f"values of carrier must be text, got {types}; quote or convert numbers: '9', str(9)"
    )


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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["AA", {"B6"}],
            "must be sets, lists or tuples of text, got str; a value of two texts is [['AA', 'B6']]",
        ),
        ([{"AA"}, None, 9], "must be sets, lists or tuples of text, got int; a value of two"),
        ([{"AA", 7391}], "must be text, got int; quote or convert numbers: '9', str(9)"),
        (CANARY, "must be a set of text, or a list, tuple or array of such sets, got str"),
        ({CANARY: 1}, "must be a set of text, or a list, tuple or array of such sets, got dict"),
    ],
)
def test_values_other_than_sets_of_text_are_refused_with_advice(given, message):
    with pytest.raises(TypeError) as caught:
        text_sets("values of airports", given)
    assert str(caught.value).startswith(f"values of airports {message}")


@pytest.mark.parametrize("given", [7391, b"7391", {CANARY: 1}, {CANARY}, np.float64(7391)])
def test_values_of_wrong_shape_are_refused(given):
    with pytest.raises(TypeError) as caught:
        texts("values of carrier", given)
    assert str(caught.value) == (
        f"values of carrier must be text, or a list, tuple or array of text, got {type(given).__name__}"
    )


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (array.array("i", [7]), "array; give its .tolist()"),
        (np.array(CANARY), "ndarray; give its .tolist()"),
        (np.array([[CANARY]]), "ndarray of 2 dimensions; give one column of it: array[:, 0].tolist()"),
    ],
)
def test_what_can_become_a_list_is_refused_with_the_way_to_do_it(given, advice):
    with pytest.raises(TypeError) as caught:
        texts("values of carrier", given)
    assert str(caught.value) == (
        f"values of carrier must be text, or a list, tuple or array of text, got {advice}"
    )


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


@pytest.mark.parametrize(
    ("given", "types"), [([1, "7391", None], "str"), ([True], "bool"), (np.array(["1.5"]), "str")]
)
def test_other_than_integers_are_refused_with_advice(given, types):
    with pytest.raises(TypeError) as caught:
        integers("values of latency", given)
    assert str(caught.value) == f"values of latency must be integers, got {types}; convert them: int('9')"


@pytest.mark.parametrize("given", ["7391", True, 1j, {7391}])
def test_single_non_integer_is_refused(given):
    with pytest.raises(TypeError) as caught:
        integers("values of latency", given)
    assert str(caught.value) == (
        "values of latency must be an integer, or a list, tuple or array of integers, "
        f"got {type(given).__name__}"
    )


def test_clients_are_one_text_for_each_value():
    assert clients_of(None, 2) is None
    assert clients_of("ann", 1) == ["ann"]
    assert clients_of(["ann", "bob"], 2) == ["ann", "bob"]
    with pytest.raises(ValueError, match=r"^clients must be one for each value, got 1 for 2 values$"):
        clients_of(CANARY, 2)
    with pytest.raises(TypeError, match=r"^clients must be text, got int;"):
        clients_of([7391], 1)


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


@pytest.mark.parametrize("at", [-1, -0.001, float("nan"), float("inf"), MAX_WINDOW_START + 1, [60, -7391]])
def test_time_out_of_range_is_refused_and_not_shown(at):
    with pytest.raises(ValueError, match=r"^at must be unix seconds in \[0, 253402300799\]$"):
        window_starts(at, 2, 60)


@pytest.mark.parametrize("at", ["7391", None, [None, 1], True, b"7391"])
def test_non_numeric_time_is_refused(at):
    kind = type(at).__name__
    with pytest.raises(
        TypeError, match=rf"^at must be unix seconds, one number or an array of them, got {kind}$"
    ):
        window_starts(at, 2, 60)


@pytest.mark.parametrize("at", [[1], [1, 2, 3], [[1, 2]]])
def test_wrong_number_of_times_is_refused(at):
    with pytest.raises(ValueError, match=r"^at must be one number or one for each of 2 values, got shape \("):
        window_starts(at, 2, 60)


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
    with pytest.raises(TypeError, match=r"^values of carrier must be text, got int;"):
        Buckets(CARRIER, 3).find([9])
    with pytest.raises(TypeError, match=r"^values of latency must be integers, got str;"):
        Buckets(LATENCY, 100).find(["9"])
    assert place(CARRIER, [], []) == ([], 0)
