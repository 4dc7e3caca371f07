"""The outbox keeps, counts and bounds unsent reports, and adopts those of ended producers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.producers.storage.lane_locks import claim_lane
from deniable.producers.storage.outbox import (
    MIN_FREE_PAGES,
    OVERHEAD_BYTES,
    VACUUM_PAGES,
    Depth,
    Outbox,
    StoredBuffer,
    StoredPack,
)
from deniable.producers.storage.store import Store
from tests.support.messages import PinMessages

NOW = 1_700_000_000.5
FIRST = StoredBuffer(2**64 - 1, 1_700_000_000, 0, b"abcd")
SECOND = StoredBuffer(2**64 - 1, 1_700_000_000, 3, b"efgh")


class Room:
    """Outboxes in one folder, each with its own store and lane."""

    def __init__(self, folder):
        self.folder = folder
        self._stores = []

    def open(self, limit_bytes=1_000_000):
        store = Store(self.folder)
        self._stores.append(store)
        lane = claim_lane(self.folder)
        return Opened(store, lane, Outbox(store, lane, self.folder, limit_bytes))

    def close(self):
        for store in self._stores:
            store.close()


class Opened:
    """An outbox whose every call is a transaction."""

    def __init__(self, store, lane, outbox):
        self.store, self.lane, self._outbox = store, lane, outbox

    def __getattr__(self, name):
        def call(*arguments, **named):
            with self.store.transaction():
                return getattr(self._outbox, name)(*arguments, **named)

        return call


@pytest.fixture
def room(tmp_path):
    room = Room(tmp_path)
    yield room
    room.close()


def test_packs_wait_in_order_until_forgotten(room):
    outbox = room.open()
    numbers = outbox.put([b"one", b"two", b"three"], NOW)
    assert numbers == sorted(numbers)
    assert outbox.waiting(0, 100) == [
        StoredPack(number, record) for number, record in zip(numbers, [b"one", b"two", b"three"], strict=True)
    ]
    assert [each.record for each in outbox.waiting(numbers[0], 100)] == [b"two", b"three"]
    outbox.forget([numbers[1], 12345])
    outbox.forget([numbers[1]])
    assert [each.record for each in outbox.waiting(0, 100)] == [b"one", b"three"]
    assert outbox.depth(NOW).packs == 2


@pytest.mark.parametrize(("limit", "count"), [(1, 1), (4, 1), (8, 2), (11, 2), (12, 3)])
def test_reading_is_bounded_but_never_empty(room, limit, count):
    outbox = room.open()
    outbox.put([b"aaaa", b"bbbb", b"cccc"], NOW)
    assert len(outbox.waiting(0, limit)) == count


def test_pack_numbers_are_never_reused(room):
    outbox = room.open()
    first = outbox.put([b"one"], NOW)
    outbox.forget(first)
    assert outbox.put([b"two"], NOW)[0] > first[0]


def test_representations_do_not_show_reports(room):
    assert "abcd" not in repr(FIRST)
    assert "abcd" not in repr(StoredPack(1, b"abcd"))


def test_buffer_is_replaced_whole_and_removed_when_empty(room):
    outbox = room.open()
    outbox.save([FIRST, SECOND])
    outbox.save([StoredBuffer(FIRST.fingerprint, FIRST.window_start, FIRST.cohort, b"ij")])
    assert outbox.depth(NOW).bytes == 6 + 2 * OVERHEAD_BYTES
    outbox.save([StoredBuffer(SECOND.fingerprint, SECOND.window_start, SECOND.cohort, b"")])
    assert outbox.depth(NOW) == Depth(0, 2 + OVERHEAD_BYTES, 0.0)
    assert [each.reports for each in outbox.adopt(own=True)] == [b"ij"]
    assert outbox.depth(NOW) == Depth(0, 0, 0.0)


def test_depth_has_packs_bytes_and_age(room):
    outbox = room.open()
    assert outbox.depth(NOW) == Depth(0, 0, 0.0)
    (first,) = outbox.put([b"four"], NOW)
    outbox.put([b"seventy"], NOW + 10)
    assert outbox.depth(NOW + 30) == Depth(2, 11 + 2 * OVERHEAD_BYTES, 30.5)
    outbox.forget([first])
    assert outbox.depth(NOW + 30) == Depth(1, 7 + OVERHEAD_BYTES, 20.5)
    assert outbox.depth(NOW - 999).age_seconds == 0.0


def test_room_is_shared_by_all_lanes(room):
    one, two = room.open(1000), room.open(1000)
    one.put([b"a" * 100], NOW)
    two.save([FIRST])
    assert one.room() == two.room() == 1000 - 100 - 4 - 2 * OVERHEAD_BYTES
    two.put([b"a" * 1000], NOW)
    assert one.room() < 0


def test_messages(room: Room, pin_messages: PinMessages) -> None:
    pin_messages({"the limit is 0": lambda: room.open(0)})


def test_packs_of_a_free_lane_are_taken_over(room):
    one, two, three = room.open(), room.open(), room.open()
    one.put([b"one"], NOW)
    one.save([FIRST])
    two.put([b"two", b"deux"], NOW)
    two.save([FIRST, SECOND])
    three.put([b"three"], NOW)
    assert three.adopt() == []
    two.lane.release()
    assert sorted(each.reports for each in three.adopt()) == [b"abcd", b"efgh"]
    assert sorted(each.record for each in three.waiting(0, 100)) == [b"deux", b"three", b"two"]
    assert three.depth(NOW) == Depth(3, 12 + 3 * OVERHEAD_BYTES, 0.5)
    assert [each.record for each in one.waiting(0, 100)] == [b"one"]
    assert one.room() == 1_000_000 - 15 - 4 - 5 * OVERHEAD_BYTES
    assert room.open().lane.number == two.lane.number


def test_next_owner_of_a_lane_takes_over_its_content(room):
    one = room.open()
    one.put([b"one"], NOW)
    one.save([FIRST])
    one.lane.release()
    again = room.open()
    assert again.lane.number == one.lane.number
    assert again.adopt(own=True) == [FIRST]
    assert again.adopt(own=True) == []
    assert [each.record for each in again.waiting(0, 100)] == [b"one"]


def test_own_buffers_stay_when_others_are_taken_over(room):
    outbox = room.open()
    outbox.save([FIRST])
    assert outbox.adopt() == []
    assert outbox.depth(NOW).bytes == 4 + OVERHEAD_BYTES


def test_undone_adoption_takes_nothing(room):
    one, two = room.open(), room.open()
    one.put([b"one"], NOW)
    one.save([FIRST])
    one.lane.release()

    def take_and_fail():
        with two.store.transaction():
            assert two._outbox.adopt() == [FIRST]
            raise KeyError

    with pytest.raises(KeyError):
        take_and_fail()
    assert two.waiting(0, 100) == []
    assert two.adopt() == [FIRST]


@pytest.mark.slow
def test_free_pages_are_returned_to_the_disk(room):
    """After an outage the file shrinks again."""
    outbox = room.open(2**28)
    numbers = outbox.put([bytes(16_000)] * 2000, NOW)
    (pages,) = outbox.store.rows("PRAGMA page_count")[0]
    for start in range(0, 2000, 50):
        outbox.forget(numbers[start : start + 50])
    (left,) = outbox.store.rows("PRAGMA page_count")[0]
    assert pages > 4000
    assert left < MIN_FREE_PAGES + VACUUM_PAGES
    assert outbox.store.rows("PRAGMA integrity_check") == [("ok",)]


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("forget"), st.integers(0, 9)),
        st.tuples(st.just("save"), st.tuples(st.integers(0, 2), st.binary(max_size=40))),
        st.tuples(st.just("next"), st.just(0)),
    ),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(ACTIONS)
def test_totals_match_the_stored_rows(tmp_path_factory, actions):
    """After any puts, saves, deletions and adoptions."""
    room = Room(tmp_path_factory.mktemp("outbox"))
    outbox, packs, buffers = room.open(), {}, {}
    for action, given_ in actions:
        if action == "put":
            packs[outbox.put([given_], NOW)[0]] = given_
        elif action == "forget" and packs:
            number = sorted(packs)[given_ % len(packs)]
            outbox.forget([number])
            del packs[number]
        elif action == "save":
            cohort, reports = given_
            outbox.save([StoredBuffer(1, 60, cohort, reports)])
            buffers[cohort] = reports
        elif action == "next":
            outbox.lane.release()
            outbox = room.open()
            left = outbox.adopt(own=True)
            assert {each.cohort: each.reports for each in left} == {c: r for c, r in buffers.items() if r}
            outbox.save(left)
        kept = [*packs.values(), *filter(None, buffers.values())]
        assert outbox.room() == 1_000_000 - sum(map(len, kept)) - OVERHEAD_BYTES * len(kept)
        assert [each.number for each in outbox.waiting(0, 10_000)] == sorted(packs)
        assert outbox.depth(NOW).packs == len(packs)
    room.close()
