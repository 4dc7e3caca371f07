"""Rounds, a step at a time: what a transaction keeps, what leaves, and that values change none of it."""

import re
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from estimators.collection import Collection
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from producers.budget.allowance import Allowance, Budget
from producers.budget.limits import UnknownLimitError
from producers.concurrency.clock import Clock
from producers.config import ProducerConfig
from producers.metrics.collector import ProducerMetrics
from producers.metrics.counters import Receipt, ReportTotals
from producers.pipeline.dispatcher import Dispatch
from producers.pipeline.open_store import StoreHandle
from producers.pipeline.submission_queue import FlushRequest, PendingReceipt, Submission
from producers.pipeline.transactions import StoreTransactions
from producers.randomization.prf import ClientKeys
from producers.randomization.secret import Secret
from producers.responders.factory import responder_of
from producers.storage.outbox import Outbox
from producers.storage.store import BusyError, Store, StoreError
from producers.transport.sender import Outcome
from producers.wire import buckets, decode
from tests.support.producers.sources import RepeatableWords

NOW = 1_800_000_000
LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0))
CARRIER = Collection("carrier", KRR.from_epsilon(3, 1.0), values=("AA", "B6", "9E"))
BLOOM = Collection("destination", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
HOT = Collection("meals", HotRappor.from_probabilities(4, 2, 0.25, 0.35, 0.65), values=("a", "b", "c", "d"))


class Hand:
    """A delivery whose broker answers when the test wants it to."""

    def __init__(self, clock, answers=True):
        self.packs = []
        self.times = []
        self.trouble = None
        self.answers = answers
        self.space = 10**8
        self._clock = clock
        self._open = {}
        self._lost = frozenset()

    def room(self):
        return self.space

    def send(self, packs):
        for pack in packs:
            assert pack.number not in self._open
            self.packs.append(pack)
            self.times.append(self._clock.now)
            self._open[pack.number] = NOW * 1000

    def lose(self):
        self._lost, self._open = frozenset(self._open), {}

    def outcome(self):
        lost, self._lost = self._lost, frozenset()
        acknowledged = {}
        if self.answers:
            acknowledged, self._open = self._open, {}
        return Outcome(acknowledged, lost)


class FakeClock(Clock):
    def __init__(self):
        super().__init__(steady=lambda: self.now, unix=lambda: NOW + self.now)
        object.__setattr__(self, "now", 0.0)

    def advance(self, seconds):
        object.__setattr__(self, "now", self.now + seconds)


@pytest.fixture
def make(tmp_path):
    """Makes rounds with all that belongs to them; `close` stands for the end of their process."""
    made = []

    def make_one(*allowances, folder=tmp_path, seed=3, answers=True, **options):
        options = {"pack_reports": 7, "pack_seconds": 5.0, **options}
        config = ProducerConfig(
            allowances=allowances or (Allowance(LATENCY, None),),
            bootstrap_servers="127.0.0.1:9092",
            topic="reports",
            partitions=4,
            data_dir=folder,
            **options,
        )
        clock, tally = FakeClock(), ReportTotals(each.collection.name for each in config.allowances)
        hand, words = Hand(clock, answers), RepeatableWords(seed)
        collections = {each.collection.fingerprint: each.collection for each in config.allowances}
        shelf = StoreHandle(config, Secret(bytes(32)), clock)
        rounds = StoreTransactions(config, shelf, words, clock, tally, Dispatch(hand, 4, collections, tally))
        made.append(shelf)
        return SimpleNamespace(
            rounds=rounds,
            shelf=shelf,
            clock=clock,
            hand=hand,
            tally=tally,
            words=words,
            allowances=config.allowances,
        )

    yield make_one
    for shelf in made:
        shelf.close()


def reports(numbers, clients=None, window=NOW // 60 * 60):
    rows = np.array(numbers, "<u2").view(np.uint8).reshape(-1, 2)
    count = len(numbers)
    keys = None if clients is None else ClientKeys(Secret(bytes(32))).of(clients)
    return Submission(
        "latency", np.full(count, window), np.zeros(count, np.uint16), rows, keys, PendingReceipt(count)
    )


def sent(hand):
    return [sorted(buckets(decode(pack.record)).tolist()) for pack in hand.packs]


def steps(made, values, destinations, meals, clients):
    """What is told and what leaves, for 40 steps of a second."""
    secret = Secret(bytes(32))
    keys = ClientKeys(secret)
    by_name = {each.collection.name: each.collection for each in made.allowances}
    responders = {name: responder_of(each, secret, made.words) for name, each in by_name.items()}
    receipts = []
    for step in range(40):
        part = slice(5 * step, 5 * step + 5)
        submissions = []
        for name, given in (("carrier", values), ("destination", destinations), ("meals", meals)):
            batch = responders[name].prepare(given[part], clients[part])
            cohorts, rows = batch.respond(slice(0, 5))
            windows = np.full(5, NOW // 60 * 60 + step // 10 * 60)
            submissions.append(
                Submission(name, windows, cohorts, rows, keys.of(batch.clients), PendingReceipt(5))
            )
        made.rounds.run(submissions, [], ticking=step % 3 == 2)
        receipts += [submission.ticket.receipt for submission in submissions]
        made.clock.advance(1.0)
    registry = CollectorRegistry()
    registry.register(ProducerMetrics(by_name, made.tally.counters))
    return receipts, generate_latest(registry)


def test_two_streams_that_differ_in_values_only_differ_in_payload_only(make, tmp_path, caplog):
    """Times, number, order, size, partition, id, cohort and window of packs; receipts, metrics and logs."""
    budget = Budget(epsilon=3.0, delta=1e-6, period_seconds=86_400)
    allowances = [Allowance(CARRIER, budget), Allowance(BLOOM, None, 2), Allowance(HOT, None)]
    clients = [f"client-{number * number % 61}" for number in range(200)]
    plain = make(*allowances, folder=tmp_path / "plain")
    shown = steps(plain, ["AA"] * 200, ["JFK"] * 200, [{"a"}] * 200, clients), list(caplog.messages)
    caplog.clear()
    mixed = make(*allowances, folder=tmp_path / "mixed")
    strange = ["\udc80", "Zürich", "x" * 5000, ""] * 50
    meals = [{"a", "b", "c"}, {"?"}, set(), {"d"}] * 50
    assert shown == (steps(mixed, ["ZZ", "9E", "", "AA"] * 50, strange, meals, clients), caplog.messages)
    assert plain.hand.times == mixed.hand.times
    assert len(plain.hand.packs) > 40
    for left, right in zip(plain.hand.packs, mixed.hand.packs, strict=True):
        assert (left.number, left.partition, left.window_start) == (
            right.number,
            right.partition,
            right.window_start,
        )
        assert left.record[:48] == right.record[:48]
        assert len(left.record) == len(right.record)
    assert [each.record for each in plain.hand.packs] != [each.record for each in mixed.hand.packs]
    assert sum(plain.tally.counters().refused.values()) > 100


def test_nothing_leaves_before_it_is_stored_and_charged(make, monkeypatch):
    """The transaction fails at its very end: no charge, no report, no pack remains of it."""
    made = make(Allowance(LATENCY, None))
    made.rounds.run([reports([1, 2, 3], ["ann", "ben", "eve"])], [], ticking=False)
    put = Outbox.put

    def fail(self, records, now):
        put(self, records, now)
        raise StoreError("the disk is full")

    monkeypatch.setattr(Outbox, "put", fail)
    lost = reports([4, 5, 6, 7, 8], ["a", "b", "c", "d", "e"])
    seal = FlushRequest()
    made.rounds.run([lost], [seal], ticking=True)
    assert lost.ticket.receipt == Receipt(dropped=5)
    assert seal.error == "the disk is full"
    assert made.hand.packs == []
    monkeypatch.setattr(Outbox, "put", put)
    again = reports([4, 5, 6, 7, 8], ["a", "b", "c", "d", "ann"])
    made.rounds.run([again], [], ticking=False)
    assert again.ticket.receipt == Receipt(stored=4, refused=1)
    assert sent(made.hand) == [[1, 2, 3, 4, 5, 6, 7]]
    assert made.tally.counters().dropped == {"latency": 5}


def test_a_crash_loses_nothing_that_was_kept(make):
    """The next producer sends packs as they were, and seals what was buffered, whatever its collections."""
    first = make(answers=False)
    first.rounds.run([reports(list(range(10)))], [], ticking=False)
    assert sent(first.hand) == [list(range(7))]
    first.shelf.close()
    second = make(Allowance(CARRIER, None))
    second.rounds.run([], [], ticking=True)
    assert sent(second.hand) == [list(range(7)), [7, 8, 9]]
    assert second.hand.packs[0] == first.hand.packs[0]
    second.rounds.run([], [], ticking=True)
    assert second.tally.counters().packs == 2
    assert second.tally.counters().acknowledged == {}
    second.shelf.close()
    third = make()
    third.rounds.run([], [], ticking=True)
    assert third.hand.packs == []


def test_packs_left_later_are_adopted_later(make):
    first, second = make(answers=False), make(answers=False, seed=4)
    first.rounds.run([reports(list(range(10)))], [], ticking=False)
    second.rounds.run([reports([50])], [FlushRequest()], ticking=True)
    assert sent(second.hand) == [[50]]
    first.shelf.close()
    second.clock.advance(29.0)
    second.rounds.run([], [], ticking=True)
    assert sent(second.hand) == [[50]]
    second.clock.advance(1.0)
    second.rounds.run([], [], ticking=True)
    assert sorted(sent(second.hand)) == [list(range(7)), [7, 8, 9], [50]]


def test_lost_packs_are_resent_unchanged(make):
    made = make(answers=False)
    made.rounds.run([reports(list(range(14)))], [], ticking=False)
    first = made.hand.packs[:]
    assert len(first) == 2
    made.hand.lose()
    made.rounds.run([], [], ticking=False)
    assert made.hand.packs == first * 2
    made.hand.answers = True
    for _ in range(3):
        made.rounds.run([], [], ticking=True)
    assert made.hand.packs == first * 2
    assert made.tally.counters().acknowledged == {"latency": 14}
    assert made.tally.counters().backlog.packs == 0


def test_store_of_another_secret_accepts_nothing(make, caplog):
    first, second = make(), make()
    first.rounds.run([reports([1])], [], ticking=False)
    second.shelf._secret = Secret(b"x" * 32)
    lost, seal = reports([2, 3]), FlushRequest()
    second.rounds.run([lost], [seal], ticking=False)
    assert lost.ticket.receipt == Receipt(dropped=2)
    assert lost.ticket.receipt.why_dropped == seal.error
    assert seal.error.startswith("")
    assert len(re.findall("submitted reports are dropped: .* was used with another secret", caplog.text)) == 1


def test_locked_store_changes_nothing(make, tmp_path):
    made, given, seal = make(), reports(list(range(7))), FlushRequest()
    made.shelf.opened()
    other = Store(tmp_path)
    with other.transaction():
        with pytest.raises(BusyError, match="another process has locked it"):
            made.rounds.run([given], [seal], ticking=True)
        assert (given.done.is_open, seal.done.is_open, made.hand.packs) == (False, False, [])
        # Nothing is to be kept: what waits is that of the next round.
        made.rounds.run([], [], ticking=False)
    other.close()
    made.rounds.run([given], [seal], ticking=True)
    assert given.ticket.receipt == Receipt(stored=7)
    assert sent(made.hand) == [list(range(7))]


def test_store_locked_at_commit_changes_nothing(make, monkeypatch):
    """After the commit nothing is asked any more: what was kept would be kept again."""
    made, given, seal = make(), reports(list(range(7))), FlushRequest()
    made.rounds.run([], [], ticking=True)
    depth = Outbox.depth

    def busy(self, now):
        raise BusyError("another process has locked it")

    monkeypatch.setattr(Outbox, "depth", busy)
    with pytest.raises(BusyError):
        made.rounds.run([given], [seal], ticking=True)
    assert (given.done.is_open, seal.done.is_open, made.hand.packs) == (False, False, [])
    monkeypatch.setattr(Outbox, "depth", depth)
    made.rounds.run([given], [seal], ticking=True)
    assert given.ticket.receipt == Receipt(stored=7)
    assert sent(made.hand) == [list(range(7))]


def test_unknown_limit_changes_nothing(make, tmp_path):
    """After a change of parameters, for the first client that has carried something."""
    budget = Budget(8.0, 1e-6, 86_400)
    before = make(Allowance(Collection("latency", KRR.from_epsilon(1000, 0.5)), budget))
    before.rounds.run([reports([1], ["ann"], NOW // 60 * 60 - 60)], [], ticking=False)
    before.shelf.close()
    made, given, seal = make(Allowance(LATENCY, budget)), reports([1, 2], ["ann", "ben"]), FlushRequest()
    with pytest.raises(UnknownLimitError) as unknown:
        made.rounds.run([given], [seal], ticking=True)
    assert (given.done.is_open, seal.done.is_open, made.hand.packs) == (False, False, [])
    with closing(Store(tmp_path, busy_seconds=0)) as other, other.transaction():
        unknown.value.find()
    made.rounds.run([given], [seal], ticking=True)
    assert given.ticket.receipt == Receipt(stored=2)
    assert sent(made.hand) == [[1], [1, 2]]


def test_clock_that_was_ahead_is_reported(make, caplog):
    made = make(Allowance(LATENCY, None))
    made.clock.advance(10_000.0)
    made.rounds.run([reports([1], ["ann"], NOW // 60 * 60 + 10_020)], [], ticking=False)
    made.clock.advance(-10_000.0)
    made.rounds.run([reports([2], ["ben"])], [], ticking=False)
    assert "collection latency: windows close 10000 s too early by this machine's clock" in caplog.text


def test_abandoned_flush_is_settled_at_the_end(make):
    made, seal = make(answers=False), FlushRequest()
    made.rounds.run([reports([1])], [seal], ticking=False)
    assert not seal.done.is_open
    made.rounds.end("the producer is closed")
    assert (seal.done.is_open, seal.error) == (True, "the producer is closed")


def test_without_room_in_flight_packs_wait_in_the_outbox(make):
    made = make(answers=False)
    made.hand.space = 999_999
    made.rounds.run([reports(list(range(7)))], [], ticking=True)
    assert made.hand.packs == []
    assert made.tally.counters().backlog.packs == 1
    made.clock.advance(100.0)
    made.rounds.run([], [], ticking=True)
    assert made.tally.counters().backlog.seconds == pytest.approx(100, abs=1)
    made.hand.space = 10**8
    made.rounds.run([], [], ticking=False)
    assert len(made.hand.packs) == 1


def test_flush_waits_for_new_and_earlier_packs(make):
    first = make(answers=False)
    first.rounds.run([reports(list(range(10)))], [], ticking=False)
    first.shelf.close()
    second = make(answers=False)
    seal = FlushRequest()
    second.rounds.run([], [seal], ticking=False)
    second.rounds.run([], [], ticking=False)
    assert not seal.done.is_open
    second.hand.answers = True
    second.rounds.run([], [], ticking=False)
    assert seal.done.is_open
    assert seal.error is None
    nothing = FlushRequest()
    second.rounds.run([], [nothing], ticking=False)
    assert nothing.done.is_open


def test_damaged_store_is_reported_and_nothing_of_it_is_sent(make, tmp_path, caplog):
    made = make(answers=False)
    made.hand.space = 0
    made.rounds.run([reports(list(range(7)))], [], ticking=False)
    store = Store(tmp_path)
    store.rows("UPDATE records SET record = zeroblob(66)")
    store.close()
    made.hand.space = 10**8
    made.rounds.run([], [], ticking=False)
    assert made.hand.packs == []
    assert "a record of the store is damaged: malformed; restore a copy" in caplog.text
