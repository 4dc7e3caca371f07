"""One value of a call is checked by type; what passes is exactly what a batch would report."""

from collections.abc import Sequence, Set
from enum import IntEnum, StrEnum
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.responders.single_value import unix_seconds, value_rule
from deniable.producers.responders.validation import client_text
from tests.support.messages import PinMessages

LISTED = Collection("listed", KRR.from_epsilon(3, 1.0), values=("AA", "B6"), other=True)
SIZED = Collection("sized", KRR.from_epsilon(1000, 1.0))
LONGITUDINAL = Collection("again", LongitudinalKRR.from_epsilons(4, 2.5, 1.5), memoize=True)
LONGITUDINAL_LISTED = Collection(
    "again_listed", LongitudinalKRR.from_epsilons(2, 2.5, 1.5), values=("AA", "B6"), memoize=True
)
BLOOM = Collection("bloom", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
ONE_HOT = Collection("one", HotRappor.from_probabilities(8, 1, 0.25, 0.25, 0.75), values=tuple("abcdefgh"))
TWO_HOT = Collection("two", HotRappor.from_probabilities(8, 2, 0.25, 0.25, 0.75), values=tuple("abcdefgh"))
NUMBER = Collection("number", SquareWave.from_epsilon(0.0, 1.0, 16, 1.0))
TEXT = (LISTED, LONGITUDINAL_LISTED, BLOOM, ONE_HOT)
INTEGER = (SIZED, LONGITUDINAL)


class Carrier(StrEnum):
    """A text with a class of its own."""

    AMERICAN = "AA"


class Level(IntEnum):
    """An integer with a class of its own."""

    HIGH = 3


class Loud(str):
    """Text that shows itself differently."""

    def __str__(self):
        return "loud"


class Frozen(Set):
    """A set that is neither `set` nor `frozenset`."""

    def __init__(self, items):
        self._items = items

    def __contains__(self, item):
        return item in self._items

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)


class Row(Sequence):
    """A sequence that is neither list nor tuple."""

    def __getitem__(self, index):
        return "AA"

    def __len__(self):
        return 1


@pytest.mark.parametrize("collection", TEXT, ids=lambda each: each.name)
def test_text_is_the_exact_type_of_collections_of_text(collection):
    assert value_rule(collection).exact is str


@pytest.mark.parametrize("collection", INTEGER, ids=lambda each: each.name)
def test_integers_are_the_exact_type_of_sized_collections(collection):
    assert value_rule(collection).exact is int


@pytest.mark.parametrize("value", ["a", {"a"}, ("a", "b"), 5, None])
def test_every_set_is_checked(value):
    """Since it must be copied: its owner may change it."""
    assert not isinstance(value, value_rule(TWO_HOT).exact)


@pytest.mark.parametrize("value", [Carrier.AMERICAN, np.str_("AA"), Loud("AA")])
@pytest.mark.parametrize("collection", TEXT, ids=lambda each: each.name)
def test_text_of_other_types_becomes_text(collection, value):
    checked = value_rule(collection).checked(value)
    assert checked == "AA"
    assert type(checked) is str


@pytest.mark.parametrize("client", ["7", 7, 7.0, np.int8(7), np.float32(7), np.str_("7")])
def test_an_integer_id_of_a_client_is_its_decimal_text(client):
    found = client_text("client", client)
    assert (type(found), found) == (str, "7")


@pytest.mark.parametrize(
    ("value", "kept"),
    [(np.int8(-3), -3), (np.uint64(2**64 - 1), 2**64 - 1), (Level.HIGH, 3), (10**30, 10**30)],
)
def test_integers_of_other_types_become_integers(value, kept):
    checked = value_rule(SIZED).checked(value)
    assert checked == kept
    assert type(checked) is int


@pytest.mark.slow
@given(st.lists(st.text(), max_size=5))
def test_sets_are_copied(items):
    for given_set in (
        items,
        tuple(items),
        set(items),
        frozenset(items),
        Frozen(items),
        dict.fromkeys(items).keys(),
    ):
        checked = value_rule(TWO_HOT).checked(given_set)
        assert type(checked) is tuple
        assert list(checked) == list(given_set)


def test_later_change_of_a_set_has_no_effect():
    items = ["a"]
    checked = value_rule(TWO_HOT).checked(items)
    items.append("b")
    assert checked == ("a",)


def test_messages(pin_messages: PinMessages) -> None:
    given = {
        "bytes instead of a text": (BLOOM, b"7391"),
        "a list instead of a text": (LISTED, [7391]),
        "a dict instead of an integer": (SIZED, {7391: 1}),
        "a text instead of a set": (TWO_HOT, "7391"),
        "a sequence of another type instead of a set": (TWO_HOT, Row()),
        "a dict instead of a set": (TWO_HOT, {"a": 1}),
        "a set with bytes": (TWO_HOT, {"a", b"7391"}),
        "a list instead of a number": (NUMBER, [0.5]),
        "an array instead of a number": (NUMBER, np.array([0.5])),
        "a complex number instead of a number": (NUMBER, 1j),
    }
    times = {
        "a text": "7391",
        "a bool": True,
        "a bool of numpy": np.bool_(True),
        "None": None,
        "a list": [7391],
        "an array": np.array([7391]),
        "a complex number": 1j,
    }
    pin_messages(
        {what: partial(value_rule(collection).checked, value) for what, (collection, value) in given.items()}
        | {"a fraction instead of a client": lambda: client_text("client", 7391.5)}
        | {f"{what} instead of a time": partial(unix_seconds, at) for what, at in times.items()}
    )


@pytest.mark.parametrize(
    ("at", "seconds"),
    [
        (5, 5.0),
        (2.5, 2.5),
        (np.int32(7), 7.0),
        (np.float32(0.5), 0.5),
        (-1, float("inf")),
        (10**400, float("inf")),
        (-(10**400), float("inf")),  # no times
    ],
)
def test_time_becomes_a_float(at, seconds):
    assert unix_seconds(at) == seconds
    assert type(unix_seconds(at)) is float


def test_number_needs_no_check_if_it_is_a_float():
    assert value_rule(NUMBER).exact is float


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3.0),
        (Level.HIGH, 3.0),
        (np.float32(0.5), 0.5),
        (np.int8(-4), -4.0),
        (10**400, np.inf),
        (-(10**400), -np.inf),
    ],
)
def test_number_becomes_a_float(value, expected):
    found = value_rule(NUMBER).checked(value)
    assert (type(found), found) == (float, expected)
