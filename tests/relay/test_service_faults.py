"""The real relay, killed, stopped, doubled and told to stop: workers count each accepted report once.

And the records of `rejected-uploads` add up to what devices were told, whatever was sent twice.
"""

import sys

import pytest

from tests.support.needed import but_for
from tests.support.processes import wait_until
from tests.support.relay.rounds import Round

pytestmark = [pytest.mark.broker, pytest.mark.all]

SEND_SECONDS = 4.0
SETTLE_SECONDS = 60.0
REWIND_SECONDS = 90.0


def die(point, batches, **order):
    return {"point": point, "batches": batches, **order}


def stop(point, batches, **order):
    return die(point, batches, kill=False, **order)


BOTH = {"assigned": True}
#: Orders of the relays of a round: two at once, then others, one after the other; then one without an order.
ROUNDS = {
    "before, kill": [die("before", 2), die("before", 3)],
    "in, kill": [die("in", 2), die("in", 3)],
    "after, kill": [die("after", 1), die("after", 3)],
    "marker, kill": [die("marker", 3), die("in", 3)],
    "zombie before": [stop("before", 2), {}],
    "zombie in": [stop("in", 2), {}],
    "zombie after": [{}, stop("after", 2)],
    "zombie marker": [stop("marker", 1), {}],
    "two on each partition": [BOTH, BOTH],
    "two on each partition, one dies": [BOTH, die("in", 3, **BOTH)],
    "two on each partition, one is stopped": [stop("in", 2, **BOTH), BOTH],
}
#: Those that are not only run nightly: a death of a relay alone, and a stop of one of two.
OFTEN = {
    "marker, kill",
    "two on each partition, one is stopped",
}


def judged(turn, counted):
    """Return the difference; shown by pytest -rP."""
    difference = turn.difference(counted)
    text = f"{turn.uploaded.reports} reports, {counted.records} packs, {dict(counted.rejected)}"
    sys.stdout.write(f"{text}, {turn.outcomes()}, difference {difference}\n")
    assert counted.rejected.keys() <= {"duplicate"}
    return difference


@pytest.fixture
def turn(broker):
    found = Round(broker, 5)
    yield found
    found.close()


@pytest.mark.parametrize("name", but_for(OFTEN, ROUNDS, pytest.mark.nightly))
def test_each_accepted_report_is_counted_once(turn, name):
    orders = ROUNDS[name]
    for order in orders:
        turn.start(**order)
    turn.send(SEND_SECONDS)
    last = turn.start(**{key: value for key, value in orders[0].items() if key == "assigned"})
    turn.send(SEND_SECONDS / 2)
    assert judged(turn, turn.settled(SETTLE_SECONDS)) == 0
    assert wait_until(turn.has_said_all, SETTLE_SECONDS)
    assert turn.end(last) == 0


@pytest.mark.nightly
def test_relays_that_do_not_begin_at_the_start_of_the_log(turn):
    """Once no window is open that an early upload could reach, relays rewind to later offsets."""
    turn.start(**die("in", 20))
    turn.start(**stop("after", 12))
    turn.send(6.0)
    turn.start()
    turn.send_until(turn.has_rewound, REWIND_SECONDS)
    turn.start(**die("after", 12))
    turn.send(6.0)
    turn.start()
    assert judged(turn, turn.settled(SETTLE_SECONDS)) == 0


def test_a_newer_file_changes_the_settings_while_relays_run(turn):
    first = turn.start()
    turn.send(SEND_SECONDS / 2)
    turn.write(revision=2, shuffle=0)
    turn.start()
    turn.send(SEND_SECONDS / 2)
    assert turn.end(first) == 0
    turn.send(SEND_SECONDS / 2)
    assert judged(turn, turn.settled(SETTLE_SECONDS)) == 0
    assert wait_until(turn.has_said_all, SETTLE_SECONDS)


def test_relays_that_stop_in_good_order_leave_nothing_to_send_twice(turn):
    for _ in range(3):
        relay = turn.start()
        turn.send(1.0)
        assert turn.end(relay) == 0
    turn.start()
    counted = turn.settled(SETTLE_SECONDS)
    assert judged(turn, counted) == 0
    assert not counted.rejected
