"""The dispatch: what it hands over of an outbox, and that a damaged pack holds up no other and is told."""

import logging

import pytest

from producers.errors import DeliveryError, HopelessError
from producers.metrics.counters import ReportTotals
from producers.pipeline.dispatcher import Dispatch
from producers.storage.lane_locks import claim_lane
from producers.storage.outbox import Outbox
from producers.storage.store import Store
from producers.transport.sender import Outcome
from producers.wire import KRR_NUMBER, MAX_RECORD_BYTES, Pack, encode
from tests.support.producers.questions import LATENCY

DAMAGED = "a record of the store is damaged: malformed; restore a copy"
LATER = (
    "a record of the store is of a later version, or damaged: unsupported_version; use the version of "
    "deniable that wrote it, or restore a copy"
)


class Hand:
    """A delivery that acknowledges what it is told to."""

    def __init__(self):
        self.space = 10**8
        self.trouble = None
        self.sent = []
        self.next = Outcome({}, frozenset())

    def room(self):
        return self.space

    def send(self, packs):
        self.sent += [pack.number for pack in packs]

    def outcome(self):
        outcome, self.next = self.next, Outcome({}, frozenset())
        return outcome


class Desk:
    """A dispatch over an outbox of four packs, 1 to 4."""

    def __init__(self, folder):
        self.store, self.lane = Store(folder), claim_lane(folder)
        self.outbox = Outbox(self.store, self.lane, folder)
        self.hand, self.tally = Hand(), ReportTotals(["latency"])
        self.dispatch = Dispatch(self.hand, 4, {LATENCY.fingerprint: LATENCY}, self.tally)
        self.numbers = self.outbox.put([record(number) for number in range(4)], 0)

    def write(self, number, written):
        self.store.rows("UPDATE records SET record = ? WHERE number = ?", written, number)

    def acknowledge(self, numbers):
        self.hand.next = Outcome(dict.fromkeys(numbers, 0), frozenset())
        self.dispatch.settle()


def record(number):
    return encode(Pack(KRR_NUMBER, 0, LATENCY.fingerprint, 60, 3, 1000, bytes([number] * 16), bytes(6)))


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    yield made
    made.store.close()
    made.lane.release()


@pytest.mark.parametrize("bad", [[1], [2], [4], [1, 3, 4], [1, 2, 3, 4]])
@pytest.mark.parametrize(
    ("written", "why"),
    [(bytes(60), DAMAGED), (b"", DAMAGED), (b"DNBL\x02" + bytes(60), LATER)],
    ids=["zeros", "empty", "later"],
)
def test_unsendable_pack_does_not_delay_others(desk, caplog, bad, written, why):
    """Wherever it is. It is told once, and so is, when all else has arrived, that it stays."""
    for number in bad:
        desk.write(number, written)
    sound = [number for number in desk.numbers if number not in bad]
    for _ in range(2):
        assert desk.dispatch.feed(desk.outbox)
        desk.dispatch.rewind()
    assert desk.dispatch.feed(desk.outbox)
    assert desk.hand.sent == sound
    shown = [f"pack {number} in {desk.store.path} cannot be sent: {why}" for number in bad]
    assert caplog.messages == shown
    assert all(each.levelno == logging.ERROR for each in caplog.records)
    assert desk.tally.counters().unsendable == len(bad)
    assert desk.dispatch.refusal is None or not sound
    desk.acknowledge(sound)
    assert desk.dispatch.arrived == set(sound)
    assert [desk.dispatch.is_through(number) for number in desk.numbers] == [
        number < bad[0] for number in desk.numbers
    ]
    assert desk.dispatch.refusal == shown[0] + (f" (and {len(bad) - 1} more)" if len(bad) > 1 else "")


def test_sendable_packs_prevent_final_refusal(desk):
    desk.write(1, b"")
    desk.hand.space = MAX_RECORD_BYTES
    assert desk.dispatch.feed(desk.outbox)
    desk.acknowledge([2, 3, 4])
    assert desk.dispatch.refusal is not None
    desk.outbox.put([record(5)], 0)
    desk.hand.space = 0
    assert not desk.dispatch.feed(desk.outbox)
    assert desk.dispatch.refusal is None
    desk.hand.trouble = HopelessError("the topic is another")
    assert desk.dispatch.refusal == "the topic is another"
    desk.hand.trouble = DeliveryError("no Kafka broker answers")
    assert desk.dispatch.refusal is None


def test_pack_that_was_put_in_order_is_sent(desk):
    desk.write(2, b"")
    desk.dispatch.feed(desk.outbox)
    desk.write(2, record(1))
    desk.dispatch.rewind()
    desk.dispatch.feed(desk.outbox)
    assert desk.hand.sent == [1, 3, 4, 2]
    desk.acknowledge(desk.numbers)
    assert desk.dispatch.refusal is None
    assert desk.dispatch.is_through(4)
    assert desk.tally.counters().unsendable == 0


def test_packs_without_room_are_not_skipped(desk, monkeypatch):
    def fail(_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(desk.hand, "send", fail)
        with pytest.raises(MemoryError):
            desk.dispatch.feed(desk.outbox)
    assert desk.dispatch.cursor == 0
    assert desk.dispatch.feed(desk.outbox)
    assert desk.hand.sent == desk.numbers


def test_late_acknowledgement_counts_as_expired(desk):
    desk.dispatch.feed(desk.outbox)
    closed = 1000 * LATENCY.closes_at(60)
    desk.hand.next = Outcome({1: closed, 2: closed + 1}, frozenset({3}))
    desk.dispatch.settle()
    desk.dispatch.feed(desk.outbox)
    assert desk.hand.sent == [1, 2, 3, 4, 3]
    assert desk.tally.counters().acknowledged == {"latency": 6}
    assert desk.tally.counters().expired == {"latency": 3}


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_flush_fails_while_a_damaged_pack_is_there(make, kafka, tmp_path, damaged):
    kafka.acknowledges = False
    first = make(pack_reports=5)
    assert first.report("latency", [1] * 15, None).stored == 15
    with pytest.raises(DeliveryError, match="not all was acknowledged"):
        first.close(0)
    store = Store(tmp_path)
    number = [number for (number,) in store.rows("SELECT number FROM records ORDER BY number")][damaged]
    store.rows("UPDATE records SET record = zeroblob(60) WHERE number = ?", number)
    store.close()
    kafka.acknowledges = True
    second = make()
    why = rf"^pack {number} in {tmp_path}/producer\.sqlite cannot be sent: {DAMAGED}$"
    for count in (1, 2):
        assert second.report("latency", 1, None).stored == 1
        with pytest.raises(DeliveryError, match=why):
            second.flush()
        assert second.counters().acknowledged == {"latency": 10 + count}
        assert second.counters().backlog.packs == second.counters().unsendable == 1
    with pytest.raises(DeliveryError, match=why):
        second.close()
