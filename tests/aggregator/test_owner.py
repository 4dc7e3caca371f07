"""The life of an owner on topics in memory: the one gate, and that nothing is repaired after a failure."""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import pytest
from aiokafka.errors import KafkaError
from builders import COLLECTIONS, DEPLOYMENT, FRUIT, GENESIS, T0, TOPICS, MemoryLog, progress_row, record_of
from structlog.testing import capture_logs

from aggregator import estimator as estimator_module
from aggregator import owner as owner_module
from aggregator import owners as owners_module
from aggregator import readiness as readiness_module
from aggregator import row_keys, rows
from aggregator.chain import Chain
from aggregator.ledger_store import LedgerStore, Outgoing
from aggregator.loss import RecordsLost
from aggregator.metrics import WorkerMetrics
from aggregator.owner import CLOCK_SKEW_MILLISECONDS, Owner
from aggregator.owners import Owners
from aggregator.row_reader import fold
from aggregator.tally import Tally
from aggregator.topics import Topics
from producers import wire

NOW_MS = T0 * 1000
DEADLINE_SECONDS = 5
COUNTED = {"collection": "fruit", "result": "counted"}


class Broker:
    """What an owner sees of Kafka: it is its store and its flow."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        self.log.append(TOPICS.state, 0, GENESIS[1], GENESIS[0])
        self.group_offset: int | None = None
        self.now_ms = NOW_MS
        self.failures: list[Exception] = []
        self.while_committing: Callable[[], None] = lambda: None
        self.refused_topic: str | None = None
        self.transactions: list[list[Outgoing]] = []
        self.rewinds: list[int] = []
        self.current: Chain | None = None
        self.while_opening: Callable[[], None] = lambda: None
        self.while_asked_for_the_end: Callable[[], None] = lambda: None
        self.answers = asyncio.Event()  # cleared: no commit comes back
        self.answers.set()

    def store(self, *_: object) -> "Broker":
        """In place of the class LedgerStore."""
        return self

    async def open(self) -> dict[bytes, bytes]:
        found = self._rows()
        self.while_opening()
        return found

    def _rows(self) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for record in self.log.partition(TOPICS.state, 0):
            fold(found, record)
        return found

    async def commit(self, records: Iterable[Outgoing], position: int | None = None) -> int:
        self.while_committing()
        await self.answers.wait()
        if self.failures:
            raise self.failures.pop(0)
        self.transactions.append(list(records))
        if any(record.topic == self.refused_topic for record in self.transactions[-1]):
            raise KafkaError("fenced")
        self.log.extend(self.transactions[-1])
        return self.now_ms

    async def committed(self) -> int | None:
        return self.group_offset

    async def close(self) -> None:
        pass

    async def rewind(self, partition: int, position: int) -> None:
        self.rewinds.append(position)
        self.current = Chain(position)

    async def end_offset(self, partition: int) -> int:
        records = self.log.partition(TOPICS.reports, 0)
        fetched = self.current.cursor if self.current else 0
        end = max(fetched, records[-1].offset + 1 if records else 0)
        self.while_asked_for_the_end()
        return end

    def chain(self, partition: int) -> Chain | None:
        return self.current

    def fetch(self, *offsets: int) -> None:
        assert self.current is not None
        self.current.admit(offsets, 0)

    def stored(self) -> dict[row_keys.Key, bytes]:
        return {row_keys.decode_key(key): value for key, value in self._rows().items()}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(owner_module, "LedgerStore", made.store)
    monkeypatch.setattr(owner_module, "RowReader", made.log.reader)
    for name in ("CHECKPOINT_SECONDS", "RETRY_SECONDS", "PUBLISH_SECONDS"):
        monkeypatch.setattr(owner_module, name, 0.005)
    return made


class Running:
    """An owner that serves partition 0 while a test talks to it."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.metrics = WorkerMetrics(COLLECTIONS)
        self.owner = Owner(0, DEPLOYMENT, broker, self.metrics)
        self._stopping = asyncio.Event()

    async def __aenter__(self) -> "Running":
        self.task = asyncio.create_task(self.owner.run(self._stopping))
        await self.until(lambda: self.owner.readiness.not_ready is None)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stopping.set()
        await self.task

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():  # noqa: ASYNC110 (an owner tells nobody)
                await asyncio.sleep(0.001)

    def offer(self, *offsets: int) -> None:
        for offset in offsets:
            self.owner.offer(offset, NOW_MS, record_of(number=offset))

    async def stored(self) -> None:
        """Wait for the next transaction."""
        before = len(self.broker.transactions)
        await self.until(lambda: len(self.broker.transactions) > before + 1)


def packs(broker: Broker) -> int:
    """Packs that the stored ledger holds."""
    row = broker.stored().get(row_keys.CountKey(FRUIT.fingerprint, T0, 0, 0))
    return rows.decode_counters(row).packs if row else 0


def position(broker: Broker) -> int:
    return rows.decode_progress(broker.stored()[row_keys.SingleKey.PROGRESS]).position


def test_a_revocation_is_not_lost_in_a_failure(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the owner still unwinds: opening the ledger again would fence the rightful owner."""
    unwinding = asyncio.Event()

    class SlowReader:
        def __init__(self, *of: object) -> None:
            self.reader = broker.log.reader(*of)

        async def __aenter__(self) -> object:
            return await self.reader.__aenter__()

        async def __aexit__(self, *failure: object) -> None:
            unwinding.set()
            await asyncio.sleep(0.05)
            await self.reader.__aexit__(*failure)

        def __getattr__(self, name: str) -> object:
            return getattr(self.reader, name)

    monkeypatch.setattr(owner_module, "RowReader", SlowReader)

    async def run() -> None:
        owners = Owners(DEPLOYMENT, WorkerMetrics(COLLECTIONS))
        await owners.assign([0], broker)
        async with asyncio.timeout(DEADLINE_SECONDS):
            while owners.not_ready():  # noqa: ASYNC110 (an owner tells nobody)
                await asyncio.sleep(0.001)
            broker.failures.append(KafkaError("gone"))
            broker.now_ms += 1
            owners.offer(0, 0, NOW_MS, b"no pack")
            await unwinding.wait()
            opened = len(broker.rewinds)
            await owners.release()
            await asyncio.sleep(0.05)
        assert len(broker.rewinds) == opened

    asyncio.run(run())


def test_counting_that_stands_still_is_not_ready(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log goes on and nothing is fetched: such a worker looks alive and does nothing; it is rewound."""
    monkeypatch.setattr(readiness_module, "STANDSTILL_SECONDS", 0.05)

    async def run() -> None:
        async with Running(broker) as running:
            broker.log.append(TOPICS.reports, 0, b"no pack")
            await running.until(lambda: running.owner.readiness.not_ready is not None)
            assert running.owner.readiness.not_ready == (
                "partition 0: counting stands still at offset 0, the log ends at 1"
            )
            assert stalled(running) == 1
            await running.until(lambda: broker.rewinds == [0, 0])
            broker.fetch(0)
            running.owner.offer(0, NOW_MS, b"no pack")
            await running.until(lambda: running.owner.readiness.not_ready is None)
            assert stalled(running) == 0

    asyncio.run(run())


def test_a_record_that_can_never_be_stored_is_a_standstill(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first transaction of each opening, before that record comes, is stored; the next one is not."""
    monkeypatch.setattr(readiness_module, "STANDSTILL_SECONDS", 0.1)
    broker.refused_topic = TOPICS.rejected
    broker.log.append(TOPICS.reports, 0, b"no pack")

    async def run() -> None:
        running, stopping = Running(broker), asyncio.Event()
        task = asyncio.create_task(running.owner.run(stopping))

        async def deliver_until(condition: Callable[[], bool]) -> set[bool]:
            """Whether it was ready meanwhile."""
            ready = set()
            while not condition():
                if broker.current is not None and broker.current.cursor == 0:
                    broker.fetch(0)
                running.owner.offer(0, NOW_MS, b"no pack")
                ready.add(running.owner.readiness.not_ready is None)
                await asyncio.sleep(0.001)
            return ready

        async with asyncio.timeout(2 * DEADLINE_SECONDS):
            await deliver_until(lambda: stalled(running) == 1)
            openings = len(broker.rewinds)
            assert await deliver_until(lambda: len(broker.rewinds) >= openings + 3) == {False}
            broker.refused_topic = None
            await deliver_until(lambda: running.owner.readiness.not_ready is None)
        stopping.set()
        await task

    asyncio.run(run())


def test_a_record_that_finds_no_memory_is_counted_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of it may be counted: that ledger is thrown away."""
    add = Tally.add

    def fail_once(self: Tally, pack: wire.Pack) -> None:
        monkeypatch.setattr(Tally, "add", add)
        raise MemoryError

    async def run() -> None:
        async with Running(broker) as running:
            monkeypatch.setattr(Tally, "add", fail_once)
            broker.fetch(0)
            running.offer(0)
            await running.until(lambda: broker.rewinds == [0, 0])
            broker.fetch(0)
            running.offer(0)
            await running.stored()

    with capture_logs() as logs:
        asyncio.run(run())
    assert (packs(broker), position(broker)) == (1, 1)
    lost = [entry["reason"] for entry in logs if entry["event"] == "ledger lost"]
    assert lost == ["partition 0: not enough memory to count the record at offset 0"]


def test_a_ledger_that_cannot_be_stored_is_never_ready(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens, and opens again: each time it looks well until its first transaction."""
    monkeypatch.setattr(readiness_module, "UNSTORED_SECONDS", 0.1)
    broker.refused_topic = TOPICS.counts

    async def run() -> None:
        running = Running(broker)
        task = asyncio.create_task(running.owner.run(asyncio.Event()))
        seen = set()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(broker.rewinds) < 10 or not stalled(running):
                seen.add(running.owner.readiness.not_ready)
                await asyncio.sleep(0.001)
        task.cancel()
        assert seen == {
            "partition 0: opening the ledger",
            "partition 0: KafkaError: fenced; opening the ledger again",
        }

    asyncio.run(run())


def test_what_was_read_to_open_a_ledger_does_not_stay_in_memory(broker: Broker) -> None:
    """Ten million ids would take twice as much for as long as the partition is owned."""
    row = broker.log.partition(TOPICS.state, 0)[0].value
    before = sys.getrefcount(row)

    async def run() -> None:
        async with Running(broker):
            assert sys.getrefcount(row) == before

    asyncio.run(run())


def test_a_slow_checkpoint_is_not_followed_by_a_pause_as_long(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_module, "LONGEST_PAUSE_SECONDS", 0.05)

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            broker.answers.clear()
            running.offer(0)
            await asyncio.sleep(1.0)
            broker.answers.set()
            await running.until(lambda: len(broker.transactions) > 1)
            running.offer(1)
            resumed = time.monotonic()
            await running.until(lambda: position(broker) == 2)
            assert time.monotonic() - resumed < 0.7

    asyncio.run(run())


def test_rows_are_encoded_in_a_thread(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    threads, compose = set(), owner_module.compose

    def told(*of: Any) -> list[Outgoing]:
        threads.add(threading.current_thread())
        return compose(*of)

    monkeypatch.setattr(owner_module, "compose", told)

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()

    asyncio.run(run())
    assert threads
    assert threading.main_thread() not in threads


def test_a_log_that_ends_before_the_position_ends_the_worker(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            running.offer(0, 1)
            await running.stored()
            broker.current = Chain(1)
            await running.until(running.task.done)

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(run())
    (refusal,) = caught.value.exceptions
    assert str(refusal).startswith(
        f"partition 0 of {TOPICS.reports} ends at offset 1, and was counted up to 2 already: "
    )


def test_what_is_counted_while_the_end_is_asked_for_may_lie_beyond_it(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()

            def count() -> None:
                if broker.current is not None and broker.current.cursor == 1:
                    broker.fetch(1)
                    running.offer(1)

            broker.while_asked_for_the_end = count
            await running.until(lambda: position(broker) == 2)

    asyncio.run(run())


def test_a_task_that_outlives_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise its partition could never be given to another worker."""
    monkeypatch.setattr(owners_module, "CANCEL_SECONDS", 0.01)

    async def stubborn() -> None:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(DEADLINE_SECONDS)
        await asyncio.sleep(DEADLINE_SECONDS)

    async def run() -> None:
        owners = Owners(DEPLOYMENT, WorkerMetrics(COLLECTIONS))
        task = owners._tasks[0] = asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        await owners.release()
        assert task.cancelled()

    asyncio.run(run())


def test_a_checkpoint_that_does_not_come_back_is_told(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness_module, "UNSTORED_SECONDS", 0.5)

    async def run() -> None:
        async with Running(broker) as running:
            broker.answers.clear()
            await running.until(lambda: running.owner.readiness.not_ready is not None)
            assert running.owner.readiness.not_ready == "partition 0: nothing could be stored for 0.5 s"
            assert stalled(running)
            broker.answers.set()
            await running.until(lambda: running.owner.readiness.not_ready is None)
            assert not stalled(running)

    asyncio.run(run())


def stalled(running: Running) -> float | None:
    running.owner.readiness.tell()
    return running.metrics.registry.get_sample_value("deniable_stalled", {"partition": "0"})


def test_the_record_that_follows_the_position_is_counted_and_no_other(broker: Broker) -> None:
    """Twice, late, too soon: all ignored. Offsets 3 and 4 are a hole of the log itself."""

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1, 2, 5, 6)
            running.offer(1, 0, 0, 2, 1, 0, 5, 2, 6, 5, 5, 7)
            await running.stored()

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (4, 6)


def test_without_a_chain_nothing_is_counted(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.current = None
            running.offer(0)
            assert running.owner._ledger is not None
            assert running.owner._ledger.position == 0
            await running.until(lambda: broker.rewinds == [0, 0])

    asyncio.run(run())


@pytest.mark.parametrize(
    "failure", [KafkaError("fenced"), TimeoutError(), OSError("gone"), AssertionError()], ids=repr
)
def test_after_a_failed_checkpoint_all_is_read_and_fetched_again(broker: Broker, failure: Exception) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1, 2)
            running.offer(0)
            await running.stored()
            broker.failures.append(failure)
            running.offer(1)
            await running.until(lambda: len(broker.rewinds) == 2)
            assert broker.rewinds == [0, 1]
            broker.fetch(1, 2)
            running.offer(0, 1, 2)
            await running.stored()
            assert running.metrics.registry.get_sample_value("deniable_resyncs_total") == 1

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (3, 3)


def test_what_a_successor_commits_while_rows_are_read_is_no_loss(broker: Broker) -> None:
    """It fences this owner, who finds that out at its first transaction, and must not end the worker."""

    def overtake() -> None:
        broker.group_offset = 5000

    broker.while_opening = overtake

    async def run() -> None:
        async with Running(broker) as running:
            assert running.owner.readiness.not_ready is None

    asyncio.run(run())


def test_a_pack_is_told_when_it_is_committed_and_once(broker: Broker) -> None:
    """Both are counted twice here: the transaction of the one fails while the other is counted."""

    async def run() -> list[float | None]:
        async with Running(broker) as running:
            value = running.metrics.registry.get_sample_value
            told = []
            broker.fetch(0, 1)
            broker.failures.append(KafkaError("fenced"))
            broker.while_committing = lambda: running.owner.offer(1, NOW_MS, b"no pack")
            running.owner.offer(0, NOW_MS, record_of())
            await running.until(lambda: len(broker.rewinds) == 2)
            told.append(value("deniable_reports_total", COUNTED))
            broker.fetch(0, 1)
            running.owner.offer(0, NOW_MS, record_of())
            running.owner.offer(1, NOW_MS, b"no pack")
            await running.stored()
            told.append(value("deniable_reports_total", COUNTED))
            told.append(value("deniable_packs_rejected_total", {"reason": "malformed"}))
        return told

    assert asyncio.run(run()) == [0, 3, 1]


def test_an_estimate_is_shown_when_it_is_committed(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a deposed owner estimates reaches neither the topic nor Prometheus."""
    monkeypatch.setattr(estimator_module, "ESTIMATE_SECONDS", 0.0)
    monkeypatch.setattr(Topics, "counts_partition", lambda *_: 0)
    broker.refused_topic = TOPICS.estimates

    async def run() -> None:
        async with Running(broker) as running:

            def shown() -> float | None:
                name = "deniable_estimate_reports"
                return running.metrics.registry.get_sample_value(name, {"collection": "fruit"})

            broker.fetch(0)
            running.owner.offer(0, NOW_MS, record_of(reports=[0] * 9))
            await running.until(lambda: len(broker.rewinds) == 2)
            assert shown() is None
            broker.refused_topic = None
            await running.until(lambda: shown() == 9)

    asyncio.run(run())
    assert len(broker.log.partition(TOPICS.estimates, 0)) == 1


def test_a_lost_ledger_is_told_until_it_is_open_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_module, "RETRY_SECONDS", 0.05)

    async def run() -> None:
        async with Running(broker) as running:
            broker.failures.append(KafkaError("fenced"))
            broker.fetch(0)
            running.offer(0)
            await running.until(lambda: running.owner.readiness.not_ready is not None)
            assert (
                running.owner.readiness.not_ready
                == "partition 0: KafkaError: fenced; opening the ledger again"
            )
            await running.until(lambda: running.owner.readiness.not_ready is None)

    asyncio.run(run())


def test_a_stop_does_not_wait_for_the_next_checkpoint(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_module, "CHECKPOINT_SECONDS", 1000)

    async def run() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS), Running(broker) as running:
            broker.fetch(0)
            running.offer(0)

    asyncio.run(run())
    assert packs(broker) == 1


def test_a_stop_stores_what_was_counted(broker: Broker) -> None:
    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            running.offer(0, 1)

    asyncio.run(run())
    assert (packs(broker), position(broker)) == (2, 2)


def test_what_was_fetched_but_not_delivered_is_fetched_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_module, "STUCK_SECONDS", 0.05)

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1, 2)
            running.offer(0)
            await running.until(lambda: broker.rewinds == [0, 1])

    asyncio.run(run())


def closed_until(broker: Broker) -> int:
    key = row_keys.with_source(b"P", 0)
    return max(
        rows.decode_progress(record.value or b"").closed_until_ms
        for record in broker.log.partition(TOPICS.counts, 0)
        if record.key == key
    )


@pytest.mark.parametrize("waiting", [0, 1])
def test_an_idle_partition_is_closed_until_shortly_before_the_brokers_time(
    broker: Broker, waiting: int
) -> None:
    """But not while a record waits in the log."""
    broker.now_ms = NOW_MS + 60_000
    for number in range(1 + waiting):
        broker.log.append(TOPICS.reports, 0, record_of(number=number), append_ms=NOW_MS)

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0)
            running.offer(0)
            await running.stored()
            await running.stored()

    asyncio.run(run())
    assert closed_until(broker) == (NOW_MS if waiting else broker.now_ms - CLOCK_SKEW_MILLISECONDS)


def test_deaths_are_published_with_progress_at_once(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An estimator that misses rows must know from progress that their window is over."""

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(0, 1)
            running.offer(0)
            await running.stored()
            monkeypatch.setattr(owner_module, "PUBLISH_SECONDS", 1000)
            await running.until(lambda: running.owner._publish_at > time.monotonic() + 100)
            running.owner.offer(1, FRUIT.dies_at(T0) * 1000 + 1, b"no pack")
            await running.until(
                lambda: any(r.topic == TOPICS.counts and r.value is None for r in last(broker))
            )

    asyncio.run(run())
    keys = [(record.key or b"")[:1] for record in last(broker) if record.topic == TOPICS.counts]
    assert keys == [b"R", b"P", b"P", b"P", b"P", b"C"]


def last(broker: Broker) -> list[Outgoing]:
    return broker.transactions[-1]


def test_lost_records_are_told_with_what_to_do() -> None:
    assert str(RecordsLost(3, 5, 9)) == (
        "partition 3 of the reports topic now starts at offset 9, but 5 is the next to count: 4 offsets were "
        "deleted uncounted; raise the topic's retention; to go on without them, run deniable replay "
        "--accept-loss"
    )


def test_an_owner_goes_on_from_what_is_stored(broker: Broker) -> None:
    broker.log.append(TOPICS.state, 0, progress_row(7, NOW_MS), b"P")

    async def run() -> None:
        async with Running(broker) as running:
            broker.fetch(7)
            running.offer(0, 6, 7)

    asyncio.run(run())
    assert broker.rewinds == [7]
    assert (packs(broker), position(broker)) == (1, 8)


def test_a_store_that_is_closed_takes_nothing() -> None:
    store = LedgerStore("", TOPICS, 0)
    with pytest.raises(KafkaError, match="the ledger's store is closed"):
        asyncio.run(store.commit([]))
