"""Numbers become cells of their range; none is refused for its value, and none is shown."""

import math
from functools import partial

import numpy as np
import pytest

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.responders.number import NumberResponder
from deniable.producers.responders.validation import numbers
from tests.support.messages import PinMessages
from tests.support.producers.sources import RepeatableWords

#: At epsilon 16 a report is the true cell, but for one in ten million.
ALMOST_TRUE = SquareWave.from_epsilon(-2.0, 2.0, 8, 16.0)
DELAY = Collection("delay", ALMOST_TRUE)


def responder(mechanism=ALMOST_TRUE, seed=1):
    return NumberResponder(Collection("delay", mechanism), mechanism, RepeatableWords(seed))


def reports_of(batch):
    cohorts, rows = batch.respond(slice(0, batch.count))
    assert cohorts.tolist() == [0] * batch.count
    return rows[:, 0].tolist()


def test_numbers_beyond_the_range_are_taken_as_its_ends_and_counted():
    found = responder()
    batch = found.prepare([-math.inf, -2.1, -2, -1.51, 0, 1.99, 2, 2.1, 1e300, 10**400], None)
    assert reports_of(batch) == [0, 0, 0, 0, 4, 7, 7, 7, 7, 7]
    assert found.unknown == 5


def test_what_is_no_number_is_a_uniformly_random_cell():
    """1,000 of each of 8 cells expected: 6 standard deviations are 178; a single cell would be 8,000."""
    found = responder()
    counts = np.bincount(reports_of(found.prepare([math.nan] * 8000, None)), minlength=8)
    assert np.abs(counts - 1000).max() < 178
    assert found.unknown == 8000


def test_words_drawn_do_not_depend_on_the_numbers():
    """The report of the last number is the same whatever the others are."""
    mechanism = SquareWave.from_epsilon(-2.0, 2.0, 256, 1.0)
    last = set()
    for others in ([0.0] * 99, [math.nan] * 99, [1e9] * 99):
        _, rows = responder(mechanism).prepare([*others, 1.0], None).respond(slice(0, 100))
        last.add(rows[-1].tobytes())
    assert len(last) == 1


def test_reports_of_many_cells_take_two_bytes():
    _, rows = responder(SquareWave.from_epsilon(0.0, 1.0, 256, 1.0)).prepare([0.5], None).respond(slice(0, 1))
    assert rows.shape == (1, 2)


def test_clients_are_kept_for_their_budgets():
    assert responder().prepare([0.5, 1.5], ["a", "b"]).clients == ["a", "b"]


@pytest.mark.parametrize(
    "given",
    [
        0.25,
        np.float32(0.25),
        [0.25],
        (0.25,),
        np.array([0.25]),
        np.array([0.25], np.float16),
        np.array([0.25], object),
    ],
)
def test_one_number_or_several_in_any_container(given):
    found = numbers("values", given)
    assert (found.dtype, found.tolist()) == (np.float64, [0.25])


def test_integers_are_numbers():
    assert numbers("values", np.array([3], np.uint8)).tolist() == [3]
    assert numbers("values", [2**70, -(10**400), 10**400]).tolist() == [2.0**70, -np.inf, np.inf]


def test_array_is_copied():
    """Its owner may change it before the values are randomized."""
    given = np.array([0.5])
    found = numbers("values", given)
    given[0] = 7
    assert found.tolist() == [0.5]


def test_messages(pin_messages: PinMessages) -> None:
    given = {
        "an item is bytes": [b"canary-7391"],
        "an array of two dimensions": np.array([[0.5]]),
        "a set": {0.5},
        "one of two items is a list": [0.5, ["canary-7391"]],
    }
    pin_messages({what: partial(responder().prepare, each, None) for what, each in given.items()})
