"""Packs are sent in order; a damaged pack is reported and delays no other."""

import logging
import os
from pathlib import Path

import pytest

from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.metrics.counters import ReportTotals
from deniable.producers.pipeline.dispatcher import Dispatch
from deniable.producers.pipeline.stored_packs import ToKafka
from deniable.producers.storage.lane_locks import claim_lane
from deniable.producers.storage.outbox import Outbox
from deniable.producers.storage.store import Store
from deniable.producers.transport.packs import Outcome
from deniable.protocol.wire import KRR_NUMBER, MAX_RECORD_BYTES, Pack, encode
from tests.support.brokers.log_lines import logged, messages
from tests.support.messages import PinMessages
from tests.support.producers.questions import LATENCY


class FakeDelivery:
    """A delivery whose next outcome the test sets."""

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


class FilledOutbox:
    """A dispatch over an outbox of four packs, 1 to 4."""

    def __init__(self, folder):
        self.store, self.lane = Store(folder), claim_lane(folder)
        self.outbox = Outbox(self.store, self.lane, folder)
        self.delivery, self.totals = FakeDelivery(), ReportTotals(["latency"])
        self.dispatch = Dispatch(self.delivery, ToKafka(4), {LATENCY.fingerprint: LATENCY}, self.totals)
        self.numbers = self.outbox.put([record(number) for number in range(4)], 0)

    def write(self, number, written):
        self.store.rows("UPDATE records SET record = ? WHERE number = ?", written, number)

    def acknowledge(self, numbers):
        self.delivery.next = Outcome(dict.fromkeys(numbers, 0), frozenset())
        self.dispatch.settle()


def record(number):
    return encode(Pack(KRR_NUMBER, 0, LATENCY.fingerprint, 60, 3, 1000, bytes([number] * 16), bytes(6)))


@pytest.fixture
def filled(tmp_path):
    filled = FilledOutbox(tmp_path)
    yield filled
    filled.store.close()
    filled.lane.release()


@pytest.mark.parametrize("bad", [[1], [2], [4], [1, 3, 4], [1, 2, 3, 4]])
@pytest.mark.parametrize(
    "written", [bytes(60), b"", b"DNBL\x02" + bytes(60)], ids=["zeros", "empty", "later"]
)
def test_unsendable_pack_does_not_delay_others(filled, caplog, bad, written):
    """At any position. It is logged once, and finally refused when all others have arrived."""
    for number in bad:
        filled.write(number, written)
    sound = [number for number in filled.numbers if number not in bad]
    for _ in range(2):
        assert filled.dispatch.feed(filled.outbox)
        filled.dispatch.rewind()
    assert filled.dispatch.feed(filled.outbox)
    assert filled.delivery.sent == sound
    shown = messages(caplog)
    assert [f"pack {number} in {filled.store.path}" in each for number, each in zip(bad, shown, strict=True)]
    assert all(each.levelno == logging.ERROR for each in logged(caplog))
    assert filled.totals.counters().unsendable == len(bad)
    assert filled.dispatch.refusal is None or not sound
    filled.acknowledge(sound)
    assert filled.dispatch.arrived == set(sound)
    assert [filled.dispatch.is_through(number) for number in filled.numbers] == [
        number < bad[0] for number in filled.numbers
    ]
    assert filled.dispatch.refusal.startswith(shown[0])


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    def refusal(*records: bytes) -> str | None:
        filled = FilledOutbox(tmp_path / str(len(os.listdir(tmp_path))))
        for number, written in enumerate(records, 1):
            filled.write(number, written)
        filled.dispatch.feed(filled.outbox)
        filled.acknowledge(filled.numbers[len(records) :])
        filled.store.close()
        filled.lane.release()
        return filled.dispatch.refusal

    pin_messages(
        {
            "a pack is damaged": lambda: refusal(bytes(60)),
            "a pack is of a later version": lambda: refusal(b"DNBL\x02" + bytes(60)),
            "three packs are damaged": lambda: refusal(b"", b"DNBL", bytes(60)),
        }
    )


def test_sendable_packs_prevent_final_refusal(filled):
    filled.write(1, b"")
    filled.delivery.space = MAX_RECORD_BYTES
    assert filled.dispatch.feed(filled.outbox)
    filled.acknowledge([2, 3, 4])
    assert filled.dispatch.refusal is not None
    filled.outbox.put([record(5)], 0)
    filled.delivery.space = 0
    assert not filled.dispatch.feed(filled.outbox)
    assert filled.dispatch.refusal is None
    filled.delivery.trouble = HopelessError("the topic is another")
    assert filled.dispatch.refusal == "the topic is another"
    filled.delivery.trouble = DeliveryError("no Kafka broker answers")
    assert filled.dispatch.refusal is None


def test_repaired_pack_is_sent(filled):
    filled.write(2, b"")
    filled.dispatch.feed(filled.outbox)
    filled.write(2, record(1))
    filled.dispatch.rewind()
    filled.dispatch.feed(filled.outbox)
    assert filled.delivery.sent == [1, 3, 4, 2]
    filled.acknowledge(filled.numbers)
    assert filled.dispatch.refusal is None
    assert filled.dispatch.is_through(4)
    assert filled.totals.counters().unsendable == 0


def test_packs_without_room_are_not_skipped(filled, monkeypatch):
    def fail(_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(filled.delivery, "send", fail)
        with pytest.raises(MemoryError):
            filled.dispatch.feed(filled.outbox)
    assert filled.dispatch.cursor == 0
    assert filled.dispatch.feed(filled.outbox)
    assert filled.delivery.sent == filled.numbers


def test_late_acknowledgement_counts_as_expired(filled):
    filled.dispatch.feed(filled.outbox)
    closed = 1000 * LATENCY.closes_at(60)
    filled.delivery.next = Outcome({1: closed, 2: closed + 1}, frozenset({3}))
    filled.dispatch.settle()
    filled.dispatch.feed(filled.outbox)
    assert filled.delivery.sent == [1, 2, 3, 4, 3]
    assert filled.totals.counters().acknowledged == {"latency": 6}
    assert filled.totals.counters().expired == {"latency": 3}


def test_packs_of_an_unknown_collection_count_without_its_name(filled):
    """Whether they are late is unknown, since the grace is."""
    filled.dispatch = Dispatch(filled.delivery, ToKafka(4), {}, filled.totals)
    filled.dispatch.feed(filled.outbox)
    filled.delivery.next = Outcome({1: 10**12, 2: 0}, frozenset(), rejected={3: "too_late"})
    filled.dispatch.settle()
    counters = filled.totals.counters()
    assert (counters.packs, counters.acknowledged, counters.expired) == (2, {"": 6}, {})
    assert counters.rejected == {("", "too_late"): 3}


@pytest.mark.parametrize("damaged", [0, 1, 2])
def test_flush_fails_while_the_outbox_has_a_damaged_pack(make, kafka, tmp_path, damaged):
    kafka.acknowledges = False
    first = make(pack_reports=5)
    assert first.report("latency", [1] * 15, None).stored == 15
    with pytest.raises(DeliveryError):
        first.close(0)
    store = Store(tmp_path)
    number = [number for (number,) in store.rows("SELECT number FROM records ORDER BY number")][damaged]
    store.rows("UPDATE records SET record = zeroblob(60) WHERE number = ?", number)
    store.close()
    kafka.acknowledges = True
    second = make()
    why = rf"^pack {number} in {tmp_path}/producer\.sqlite"
    for count in (1, 2):
        assert second.report("latency", 1, None).stored == 1
        with pytest.raises(DeliveryError, match=why):
            second.flush()
        assert second.counters().acknowledged == {"latency": 10 + count}
        assert second.counters().backlog.packs == second.counters().unsendable == 1
    with pytest.raises(DeliveryError, match=why):
        second.close()
