"""Events leave the buffer once, in the order in which they came, whoever adds them meanwhile."""

import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.producers.pipeline.recording.event_buffer import FIELDS, EventBuffer, Events
from deniable.protocol.notation import text_of
from deniable.protocol.wire import MAX_WINDOW_START
from tests.support.producers.recording.steps import Steps, steps_of

CANARY = "canary-7391"
EVENT = st.tuples(
    st.one_of(st.text(), st.integers()),
    st.one_of(st.none(), st.text(max_size=3)),
    st.one_of(
        st.floats(allow_nan=True, allow_infinity=True),
        st.sampled_from([0.0, -0.0, float(MAX_WINDOW_START), MAX_WINDOW_START + 0.5, -1e-9]),
    ),
)


def buffer_of(events=()):
    buffer = EventBuffer(str, text_of)
    for event in events:
        buffer.items.extend(event)
    return buffer


def rows(events):
    return list(zip(events.values, events.clients, events.times, strict=True))


def is_usable(event):
    _, client, at = event
    return client != "" and 0 <= at <= MAX_WINDOW_START


@pytest.mark.slow
@given(st.lists(st.one_of(EVENT, st.none())))
def test_any_mix_of_events_and_takes_keeps_all_in_order(steps):
    """None means a take."""
    buffer, taken = buffer_of(), []
    for step in steps:
        if step is None:
            taken += rows(buffer.take())
        else:
            buffer.items.extend(step)
    taken += rows(buffer.take())
    # By identity, since NaN differs from itself.
    expected = [step for step in steps if step is not None]
    assert [tuple(map(id, each)) for each in taken] == [tuple(map(id, each)) for each in expected]
    assert buffer.items == []


@pytest.mark.slow
@given(st.lists(EVENT))
def test_usable_events_have_a_time_and_no_empty_client(given_events):
    usable = buffer_of(given_events).take().with_clients().in_time()
    assert rows(usable) == [event for event in given_events if is_usable(event)]


def test_usable_events_are_not_copied():
    events = buffer_of([("AA", "ann", 5.0), ("B6", None, 0.0)]).take()
    assert events.with_clients().in_time() is events


@pytest.mark.slow
@given(st.lists(st.tuples(st.text(), st.one_of(st.none(), st.text(min_size=1)), st.just(5.0))))
def test_events_are_split_by_client_in_order(given_events):
    parts = [rows(part) for part in buffer_of(given_events).take().by_client()]
    with_client = [event for event in given_events if event[1] is not None]
    without = [event for event in given_events if event[1] is None]
    assert parts == [part for part in (with_client, without) if part]


@pytest.mark.parametrize("threads", [1, 8])
def test_threads_neither_lose_nor_double_events(threads):
    """The interpreter switches threads as often as it can, while another takes."""
    buffer, taken, count = buffer_of(), [], 40_000 // threads
    interval = sys.getswitchinterval()

    def add(number):
        for index in range(count):
            buffer.items.extend((number * count + index, str(number), float(index)))

    adding = [threading.Thread(target=add, args=(number,)) for number in range(threads)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in adding:
            thread.start()
        while any(thread.is_alive() for thread in adding):
            taken += rows(buffer.take())
        for thread in adding:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    taken += rows(buffer.take())
    assert sorted(value for value, _, _ in taken) == list(range(threads * count))
    for number in range(threads):
        own = [event for event in taken if event[1] == str(number)]
        assert own == [(number * count + index, str(number), float(index)) for index in range(count)]


def test_event_that_comes_within_a_take_stays():
    """At every step of the interpreter."""
    buffer, taken, added = buffer_of(), [], []

    def add():
        added.append((str(len(added)), None, 5.0))
        buffer.items.extend(added[-1])

    add()
    for at in range(1, steps_of(buffer.take)):
        add()
        with Steps(add, at):
            taken += rows(buffer.take())
    taken += rows(buffer.take())
    assert taken == added[1:]
    assert len(added) > 30


def test_list_is_never_replaced():
    """A caller may have been interrupted with the list in its hand."""
    buffer = buffer_of([("AA", None, 1.0)])
    items = buffer.items
    buffer.take()
    items.extend(("B6", None, 2.0))
    assert rows(buffer.take()) == [("B6", None, 2.0)]


def test_buffer_holds_262144_events():
    assert EventBuffer.full == FIELDS * 262_144


def test_no_value_client_or_time_is_shown():
    events = Events([CANARY], [CANARY], [7391.0])
    for shown in (repr(events), repr(buffer_of([(CANARY, CANARY, 7391.0)]))):
        assert "7391" not in shown
