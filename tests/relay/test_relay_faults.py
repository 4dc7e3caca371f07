"""Relays that are killed, stopped and doubled: workers count each accepted report exactly once."""

import sys
import time

import pytest

from tests.support.relay.rounds import Round

pytestmark = [pytest.mark.broker, pytest.mark.all]

SEND_SECONDS = 4.0
SETTLE_SECONDS = 25.0
REWIND_SECONDS = 90.0


def die(point, batches):
    return {"point": point, "batches": batches}


def stop(point, batches):
    return {"point": point, "batches": batches, "kill": False}


#: Orders of the relays of a round: two at once, then others, one after the other; then one without an order.
ROUNDS = {
    "before, kill": [die("before", 2), die("before", 4), die("before", 1)],
    "in, kill": [die("in", 2), die("in", 3), die("in", 1)],
    "after, kill": [die("after", 1), die("after", 4), die("after", 1)],
    "marker, kill": [die("marker", 1), die("in", 5), die("marker", 1)],
    "first batch, kill": [die("in", 1), die("after", 1), die("before", 1)],
    "two at once": [{}, {}, {}],
    "zombie before": [stop("before", 2), {}, die("in", 2)],
    "zombie in": [stop("in", 2), {}, die("after", 3)],
    "zombie after": [stop("after", 2), {}, die("in", 1)],
    "zombie marker": [stop("marker", 1), stop("after", 1), die("before", 2)],
}


def run(servers, seed, orders, seconds=SEND_SECONDS, settle=SETTLE_SECONDS, rewinds=False, **defect):
    turn = Round(servers, seed)
    try:
        for order in orders[:2]:
            turn.start(**order, **defect)
        turn.send(seconds / 2)
        for order in orders[2:]:
            turn.start(**order, **defect)
        turn.send(seconds / 2)
        if rewinds:
            turn.send_until(turn.has_rewound, REWIND_SECONDS)
            assert turn.has_rewound()
        time.sleep(1)
        turn.start(**defect)
        counted = turn.settled(settle)
        rejected, difference = dict(counted.rejected), turn.difference(counted)
        # Shown by pytest -rP.
        sys.stdout.write(
            f"{turn.uploaded.reports} reports, {counted.records} packs, {rejected}, difference {difference}\n"
        )
        return turn, counted
    finally:
        turn.close()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ROUNDS)
def test_each_accepted_report_is_counted_once(broker, name):
    turn, counted = run(broker, list(ROUNDS).index(name), ROUNDS[name])
    assert turn.difference(counted) == 0
    assert counted.rejected.keys() <= {"duplicate"}


@pytest.mark.nightly
def test_relays_that_do_not_begin_at_the_start_of_the_log(broker):
    """Once no window is open that an early upload could reach, relays rewind to later offsets."""
    orders = [die("in", 20), stop("after", 12), {"point": "after", "batches": 12}]
    turn, counted = run(broker, 7, orders, seconds=12.0, rewinds=True)
    assert turn.difference(counted) == 0
    assert counted.rejected.keys() <= {"duplicate"}


@pytest.mark.nightly  # a kill may fall where the defect does no harm
@pytest.mark.parametrize("defect", ["no upload ids", "fresh pack ids"])
def test_a_relay_with_a_defect_is_found_out(broker, defect):
    """Resent uploads need ids; batches sent again need the same pack ids."""
    turn, counted = run(broker, 99, ROUNDS["after, kill"], settle=12.0, defect=defect)
    assert turn.difference(counted) > 0
