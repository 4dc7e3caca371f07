"""Single store transactions: what they store and send, and that values influence neither."""

import logging
from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.producers.budget.limits import UnknownLimitError
from deniable.producers.concurrency.clock import Clock
from deniable.producers.config import ProducerConfig
from deniable.producers.metrics.collector import ProducerMetrics
from deniable.producers.metrics.counters import Receipt, ReportTotals
from deniable.producers.pipeline.dispatcher import Dispatch
from deniable.producers.pipeline.open_store import StoreHandle
from deniable.producers.pipeline.queueing.submission import FlushRequest, PendingReceipt, Submission
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.pipeline.stored_packs import ToKafka
from deniable.producers.pipeline.transactions import StoreTransactions
from deniable.producers.randomization.prf import ClientKeys
from deniable.producers.responders.factory import responder_of
from deniable.producers.storage.outbox import Outbox
from deniable.producers.storage.store import BusyError, Store, StoreError
from deniable.producers.transport.packs import Outcome
from deniable.protocol.secrets.secret import Secret
from deniable.protocol.wire import buckets, decode
from tests.support.brokers.log_lines import logged, messages
from tests.support.messages import PinMessages
from tests.support.producers.sources import RepeatableWords

NOW = 1_800_000_000
LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0))
CARRIER = Collection("carrier", KRR.from_epsilon(3, 1.0), values=("AA", "B6", "9E"))
BLOOM = Collection("destination", Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65), memoize=True)
HOT = Collection("meals", HotRappor.from_probabilities(4, 2, 0.25, 0.35, 0.65), values=("a", "b", "c", "d"))


class FakeDelivery:
    """A delivery whose broker answers while `answers` is set."""

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
    """Builds pipelines; closing the handle of one simulates the end of its process."""
    handles = []

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
        clock, totals = FakeClock(), ReportTotals(each.collection.name for each in config.allowances)
        delivery, words = FakeDelivery(clock, answers), RepeatableWords(seed)
        collections = {each.collection.fingerprint: each.collection for each in config.allowances}
        handle = StoreHandle(config, Secret(bytes(32)), clock)
        transactions = StoreTransactions(
            config,
            handle,
            words,
            clock,
            totals,
            Dispatch(delivery, ToKafka(4), collections, totals),
            ToKafka(4),
        )
        handles.append(handle)
        return SimpleNamespace(
            transactions=transactions,
            handle=handle,
            clock=clock,
            delivery=delivery,
            totals=totals,
            words=words,
            allowances=config.allowances,
        )

    yield make_one
    for handle in handles:
        handle.close()


def reports(numbers, clients=None, window=NOW // 60 * 60):
    rows = np.array(numbers, "<u2").view(np.uint8).reshape(-1, 2)
    count = len(numbers)
    keys = None if clients is None else ClientKeys(Secret(bytes(32))).of(clients)
    return Submission(
        "latency", np.full(count, window), np.zeros(count, np.uint16), rows, keys, PendingReceipt(count)
    )


def sent(delivery):
    return [sorted(buckets(decode(pack.record)).tolist()) for pack in delivery.packs]


def steps(pipeline, values, destinations, meals, clients):
    """Run 40 steps, one a second; return receipts and metrics."""
    secret = Secret(bytes(32))
    keys = ClientKeys(secret)
    by_name = {each.collection.name: each.collection for each in pipeline.allowances}
    responders = {name: responder_of(each, secret, pipeline.words) for name, each in by_name.items()}
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
        pipeline.transactions.run(submissions, [], ticking=step % 3 == 2)
        receipts += [submission.pending_receipt.receipt for submission in submissions]
        pipeline.clock.advance(1.0)
    registry = CollectorRegistry()
    registry.register(ProducerMetrics(by_name, pipeline.totals.counters))
    return receipts, generate_latest(registry)


def hashed(pipeline, values):
    """Report values of ten clients each, and return all that leaves: receipts, bytes and times of packs."""
    allowances = {each.collection.name: each for each in pipeline.allowances}
    randomization = Randomization(allowances, Secret(bytes(32)), pipeline.words, pipeline.clock)
    clients, receipts = [f"client-{number}" for number in range(10)], []
    for value in values:
        submissions = list(randomization.submissions("words", [value] * 10, clients))
        pipeline.transactions.run(submissions, [], ticking=True)
        receipts += [each.pending_receipt.receipt for each in submissions]
        pipeline.clock.advance(1.0)
    return receipts, [pack.record for pack in pipeline.delivery.packs], pipeline.delivery.times


@pytest.mark.all
def test_used_up_changes_leave_nothing_that_depends_on_values(make, tmp_path):
    """With the same random words: later values of whatever kind give the same bytes at the same times."""
    mechanism = LongitudinalHash.from_epsilons(2.0, 1.0, None, 7)
    common = [
        f"value {number}" for number in range(40)
    ]  # all 7 buckets: every client has used up its 2 changes
    later = [["one"] * 30, [f"other {number}" for number in range(30)], common[:3] * 10]
    for changes, outcomes in (2, 1), (1000, 3):
        budget = Budget(1000.0, 1e-6, 86_400, changes, "any")
        allowance = Allowance(Collection("words", mechanism, memoize=True), budget, 1000)
        left = []
        for number, values in enumerate(later):
            pipeline = make(allowance, folder=tmp_path / f"{changes}-{number}")
            receipts, records, times = hashed(pipeline, common + values)
            assert receipts == [Receipt(stored=10)] * 70
            assert len(records) > 50
            left.append((records, times))
        assert len({tuple(records) for records, _ in left}) == outcomes
        assert len({tuple(times) for _, times in left}) == 1


@pytest.mark.slow
def test_values_change_only_the_payload(make, tmp_path, caplog):
    """Values change no time, number, order, size, id or header of packs, no receipt, metric or log."""
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
    assert plain.delivery.times == mixed.delivery.times
    assert len(plain.delivery.packs) > 40
    for left, right in zip(plain.delivery.packs, mixed.delivery.packs, strict=True):
        assert (left.number, left.partition, left.window_start) == (
            right.number,
            right.partition,
            right.window_start,
        )
        assert left.record[:48] == right.record[:48]
        assert len(left.record) == len(right.record)
    assert [each.record for each in plain.delivery.packs] != [each.record for each in mixed.delivery.packs]
    assert sum(plain.totals.counters().refused.values()) > 100


def test_nothing_is_sent_before_it_is_stored_and_charged(make, monkeypatch):
    """A transaction that fails at its very end leaves no charge, report or pack."""
    pipeline = make(Allowance(LATENCY, None))
    pipeline.transactions.run([reports([1, 2, 3], ["ann", "ben", "eve"])], [], ticking=False)
    put = Outbox.put

    def fail(self, records, now):
        put(self, records, now)
        raise StoreError("the disk is full")

    monkeypatch.setattr(Outbox, "put", fail)
    lost = reports([4, 5, 6, 7, 8], ["a", "b", "c", "d", "e"])
    flush = FlushRequest()
    pipeline.transactions.run([lost], [flush], ticking=True)
    assert lost.pending_receipt.receipt == Receipt(dropped=5)
    assert flush.error == "the disk is full"
    assert pipeline.delivery.packs == []
    monkeypatch.setattr(Outbox, "put", put)
    again = reports([4, 5, 6, 7, 8], ["a", "b", "c", "d", "ann"])
    pipeline.transactions.run([again], [], ticking=False)
    assert again.pending_receipt.receipt == Receipt(stored=4, refused=1)
    assert sent(pipeline.delivery) == [[1, 2, 3, 4, 5, 6, 7]]
    assert pipeline.totals.counters().dropped == {"latency": 5}


def test_crash_loses_no_stored_reports(make):
    """The next producer sends packs unchanged and packs buffered reports, whatever its collections."""
    first = make(answers=False)
    first.transactions.run([reports(list(range(10)))], [], ticking=False)
    assert sent(first.delivery) == [list(range(7))]
    first.handle.close()
    second = make(Allowance(CARRIER, None))
    second.transactions.run([], [], ticking=True)
    assert sent(second.delivery) == [list(range(7)), [7, 8, 9]]
    assert second.delivery.packs[0] == first.delivery.packs[0]
    second.transactions.run([], [], ticking=True)
    assert second.totals.counters().packs == 2
    assert second.totals.counters().acknowledged == {"": 10}
    second.handle.close()
    third = make()
    third.transactions.run([], [], ticking=True)
    assert third.delivery.packs == []


def test_packs_left_later_are_adopted_later(make):
    first, second = make(answers=False), make(answers=False, seed=4)
    first.transactions.run([reports(list(range(10)))], [], ticking=False)
    second.transactions.run([reports([50])], [FlushRequest()], ticking=True)
    assert sent(second.delivery) == [[50]]
    first.handle.close()
    second.clock.advance(29.0)
    second.transactions.run([], [], ticking=True)
    assert sent(second.delivery) == [[50]]
    second.clock.advance(1.0)
    second.transactions.run([], [], ticking=True)
    assert sorted(sent(second.delivery)) == [list(range(7)), [7, 8, 9], [50]]


def test_lost_packs_are_resent_unchanged(make):
    pipeline = make(answers=False)
    pipeline.transactions.run([reports(list(range(14)))], [], ticking=False)
    first = pipeline.delivery.packs[:]
    assert len(first) == 2
    pipeline.delivery.lose()
    pipeline.transactions.run([], [], ticking=False)
    assert pipeline.delivery.packs == first * 2
    pipeline.delivery.answers = True
    for _ in range(3):
        pipeline.transactions.run([], [], ticking=True)
    assert pipeline.delivery.packs == first * 2
    assert pipeline.totals.counters().acknowledged == {"latency": 14}
    assert pipeline.totals.counters().backlog.packs == 0


def test_store_of_another_secret_accepts_no_reports(make, caplog, pin_messages: PinMessages) -> None:
    first, second = make(), make()
    first.transactions.run([reports([1])], [], ticking=False)
    second.handle._secret = Secret(b"x" * 32)
    lost, flush = reports([2, 3]), FlushRequest()
    second.transactions.run([lost], [flush], ticking=False)
    assert lost.pending_receipt.receipt == Receipt(dropped=2)
    assert lost.pending_receipt.receipt.why_dropped == flush.error
    (shown,) = messages(caplog)
    assert shown.endswith(flush.error)
    pin_messages({"another secret": lambda: shown})


def test_locked_store_changes_nothing(make, tmp_path):
    pipeline, given, flush = make(), reports(list(range(7))), FlushRequest()
    pipeline.handle.opened()
    other = Store(tmp_path)
    with other.transaction():
        with pytest.raises(BusyError):
            pipeline.transactions.run([given], [flush], ticking=True)
        assert (given.done.is_open, flush.done.is_open, pipeline.delivery.packs) == (False, False, [])
        # Without submissions there is nothing to store.
        pipeline.transactions.run([], [], ticking=False)
    other.close()
    pipeline.transactions.run([given], [flush], ticking=True)
    assert given.pending_receipt.receipt == Receipt(stored=7)
    assert sent(pipeline.delivery) == [list(range(7))]


def test_store_locked_at_commit_changes_nothing(make, monkeypatch):
    """No query follows the commit: if it failed, the reports would be stored twice."""
    pipeline, given, flush = make(), reports(list(range(7))), FlushRequest()
    pipeline.transactions.run([], [], ticking=True)
    depth = Outbox.depth

    def busy(self, now):
        raise BusyError("another process has locked it")

    monkeypatch.setattr(Outbox, "depth", busy)
    with pytest.raises(BusyError):
        pipeline.transactions.run([given], [flush], ticking=True)
    assert (given.done.is_open, flush.done.is_open, pipeline.delivery.packs) == (False, False, [])
    monkeypatch.setattr(Outbox, "depth", depth)
    pipeline.transactions.run([given], [flush], ticking=True)
    assert given.pending_receipt.receipt == Receipt(stored=7)
    assert sent(pipeline.delivery) == [list(range(7))]


@pytest.mark.slow
def test_unknown_limit_changes_nothing(make, tmp_path):
    """After a change of parameters, for the first client with carried spending."""
    budget = Budget(8.0, 1e-6, 86_400)
    before = make(Allowance(Collection("latency", KRR.from_epsilon(1000, 0.5)), budget))
    before.transactions.run([reports([1], ["ann"], NOW // 60 * 60 - 60)], [], ticking=False)
    before.handle.close()
    pipeline, given, flush = make(Allowance(LATENCY, budget)), reports([1, 2], ["ann", "ben"]), FlushRequest()
    with pytest.raises(UnknownLimitError) as unknown:
        pipeline.transactions.run([given], [flush], ticking=True)
    assert (given.done.is_open, flush.done.is_open, pipeline.delivery.packs) == (False, False, [])
    with closing(Store(tmp_path, busy_seconds=0)) as other, other.transaction():
        unknown.value.find()
    pipeline.transactions.run([given], [flush], ticking=True)
    assert given.pending_receipt.receipt == Receipt(stored=2)
    assert sent(pipeline.delivery) == [[1], [1, 2]]


def test_clock_that_was_ahead_is_reported(make, caplog, pin_messages: PinMessages) -> None:
    pipeline = make(Allowance(LATENCY, None))
    pipeline.clock.advance(10_000.0)
    pipeline.transactions.run([reports([1], ["ann"], NOW // 60 * 60 + 10_020)], [], ticking=False)
    pipeline.clock.advance(-10_000.0)
    pipeline.transactions.run([reports([2], ["ben"])], [], ticking=False)
    pin_messages({"the clock was ahead": lambda: "\n".join(messages(caplog))})


def test_clock_that_goes_back_delays_no_pack(make):
    """A year ahead for a moment, by the clock of the time of day: packs are paced by the steady one."""
    pipeline = make()
    times = [NOW // 60 * 60 + 365 * 86400]
    object.__setattr__(pipeline.clock, "unix", lambda: times[-1])
    pipeline.transactions.run([reports([1], window=times[0])], [], ticking=True)
    times.append(NOW)
    pipeline.clock.advance(4.9)
    pipeline.transactions.run([], [], ticking=True)
    assert pipeline.delivery.packs == []
    pipeline.clock.advance(0.2)
    pipeline.transactions.run([], [], ticking=True)
    assert sent(pipeline.delivery) == [[1]]


def test_abandoned_flush_is_settled_at_the_end(make):
    pipeline, flush = make(answers=False), FlushRequest()
    pipeline.transactions.run([reports([1])], [flush], ticking=False)
    assert not flush.done.is_open
    pipeline.transactions.end("the producer is closed")
    assert (flush.done.is_open, flush.error) == (True, "the producer is closed")


def test_without_room_in_flight_packs_wait_in_the_outbox(make):
    pipeline = make(answers=False)
    pipeline.delivery.space = 999_999
    pipeline.transactions.run([reports(list(range(7)))], [], ticking=True)
    assert pipeline.delivery.packs == []
    assert pipeline.totals.counters().backlog.packs == 1
    pipeline.clock.advance(100.0)
    pipeline.transactions.run([], [], ticking=True)
    assert pipeline.totals.counters().backlog.seconds == pytest.approx(100, abs=1)
    pipeline.delivery.space = 10**8
    pipeline.transactions.run([], [], ticking=False)
    assert len(pipeline.delivery.packs) == 1


def test_flush_waits_for_new_and_earlier_packs(make):
    first = make(answers=False)
    first.transactions.run([reports(list(range(10)))], [], ticking=False)
    first.handle.close()
    second = make(answers=False)
    flush = FlushRequest()
    second.transactions.run([], [flush], ticking=False)
    second.transactions.run([], [], ticking=False)
    assert not flush.done.is_open
    second.delivery.answers = True
    second.transactions.run([], [], ticking=False)
    assert flush.done.is_open
    assert flush.error is None
    nothing = FlushRequest()
    second.transactions.run([], [nothing], ticking=False)
    assert nothing.done.is_open


def test_damaged_store_is_reported_and_not_sent(make, tmp_path, caplog):
    pipeline = make(answers=False)
    pipeline.delivery.space = 0
    pipeline.transactions.run([reports(list(range(7)))], [], ticking=False)
    store = Store(tmp_path)
    store.rows("UPDATE records SET record = zeroblob(66)")
    store.close()
    pipeline.delivery.space = 10**8
    pipeline.transactions.run([], [], ticking=False)
    assert pipeline.delivery.packs == []
    (shown,) = logged(caplog)
    assert (shown.levelno, str(tmp_path) in shown.getMessage()) == (logging.ERROR, True)
