"""A worker ends with a reason when it must not continue."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from typing import cast

import pytest
from aiokafka.errors import KafkaConnectionError
from structlog.testing import capture_logs

from deniable.aggregator import worker
from deniable.aggregator.ledger import row_values
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition import owner as owner_module
from deniable.aggregator.partition.assignment import Assignment
from deniable.aggregator.partition.consumer import ExactApp
from deniable.aggregator.partition.owner import RecordSource
from deniable.aggregator.partition.timing import PartitionTiming
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.views.backfill import Backfill
from deniable.aggregator.views.change_watch import ChangeWatch
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.server import WebServer
from deniable.aggregator.worker import WorkerTiming
from tests.support.aggregator.builders import (
    COLLECTIONS,
    DEPLOYMENT,
    FRUIT,
    GENESIS,
    PARTITIONS,
    PLACE,
    TOPICS,
    MemoryLog,
    changed,
    estimate_of,
)
from tests.support.messages import PinMessages

DEADLINE_SECONDS = 60
QUICK = WorkerTiming(watch=0.01, retry=0.01)


@dataclass
class Engine:
    """The part of the Faust app that the worker uses."""

    should_stop: bool = False
    crash_reason: Exception | None = None

    async def maybe_start(self) -> None:
        pass


class DamagedStore:
    """A ledger written by a newer version."""

    def __init__(self, *_: object) -> None:
        pass

    async def open(self) -> dict[bytes, bytes]:
        return {b"G": GENESIS[1], b"P": b"\x02" + bytes(32)}

    async def committed(self) -> None:
        pass

    async def close(self) -> None:
        pass


def test_worker_without_partitions_reports_it_and_is_ready() -> None:
    async def run() -> None:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS))
        await owners.assign([], cast(RecordSource, None))
        assert owners.reasons_not_ready() == []

    with capture_logs() as logged:
        asyncio.run(run())
    assert [each["event"] for each in logged] == [
        "no partition is left for this worker; it takes over when another one ends"
    ]


def test_only_the_partition_owner_exports_estimates() -> None:
    """Immediately, from the topic's records; the metrics end when the partition moves to another worker."""
    metrics = WorkerMetrics(COLLECTIONS)
    home = TOPICS.counts_partition(FRUIT.fingerprint)
    newest = {"fruit": estimate_of()}

    def reported() -> float | None:
        return metrics.registry.get_sample_value("deniable_estimate_reports", {"collection": "fruit"})

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, metrics)
        for mine in ([(home + 1) % PARTITIONS], [home], [], [home]):
            await owners.assign(mine, cast(RecordSource, None))
            assert reported() is None
            await owners.show_estimates({})
            await owners.show_estimates(newest)
            assert reported() == (40 if home in mine else None)
        await owners.show_estimates({"fruit": changed(estimate_of(), revision=2, reports=41)})
        assert reported() == 41
        await owners.release()
        await owners.show_estimates(newest)
        assert reported() is None

    asyncio.run(run())


def test_estimate_is_exported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values that are not exported are counted each time."""
    metrics, shown = WorkerMetrics(COLLECTIONS), list[EstimateRecord]()
    monkeypatch.setattr(metrics, "show_estimate", shown.append)
    newest = {"fruit": estimate_of()}

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, metrics)
        await owners.assign([TOPICS.counts_partition(FRUIT.fingerprint)], cast(RecordSource, None))
        for _ in range(3):
            await owners.show_estimates(newest)
        await owners.release()

    asyncio.run(run())
    assert shown == [newest["fruit"]]


def test_estimate_of_revoked_partition_is_not_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, shown = WorkerMetrics(COLLECTIONS), list[str]()
    newest = {"fruit": estimate_of(), "place": estimate_of(PLACE)}

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, metrics)

        def show(record: EstimateRecord) -> None:
            shown.append(record.collection)
            releases.append(asyncio.create_task(owners.release()))

        releases: list[asyncio.Task[None]] = []
        monkeypatch.setattr(metrics, "show_estimate", show)
        await owners.assign(range(PARTITIONS), cast(RecordSource, None))
        await owners.show_estimates(newest)
        await asyncio.gather(*releases)

    asyncio.run(run())
    assert len(shown) == 1


def serve(engine: Engine, assigned: bool = False) -> None:
    async def run() -> None:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS))
        assert owners.reasons_not_ready() == ["waiting for partitions"]
        if assigned:
            await owners.assign([0], cast(RecordSource, None))  # the ledger fails before the source is used
            assert owners.reasons_not_ready() == ["partition 0: opening the ledger"]
        await worker._serve(
            cast(ExactApp, engine),
            owners,
            EstimateHistory(COLLECTIONS.values()),
            lambda: None,
            asyncio.Event(),
            QUICK,
        )

    asyncio.run(run())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner_module, "RowReader", MemoryLog().reader)
    monkeypatch.setattr(owner_module, "LedgerStore", DamagedStore)


def test_worker_ends_when_the_engine_stops(pin_messages: PinMessages) -> None:
    stopped = Engine(should_stop=True, crash_reason=ValueError("why"))
    pin_messages({"an engine that stops": lambda: serve(stopped)})


def test_ledger_of_a_newer_version_ends_the_worker() -> None:
    """No retry can fix that, and the stored ledger must not be overwritten."""
    with pytest.raises(row_values.RowError, match="version"):
        serve(Engine(), assigned=True)


def test_slow_last_checkpoint_does_not_keep_group_membership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Hanging(DamagedStore):
        async def open(self) -> dict[bytes, bytes]:
            return await asyncio.get_running_loop().create_future()

    async def run() -> None:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS), PartitionTiming(drain=0.01))
        await owners.assign([0], cast(RecordSource, None))
        await asyncio.sleep(0)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await owners.finish()
            await owners.release()

    monkeypatch.setattr(owner_module, "LedgerStore", Hanging)
    with capture_logs() as logged:
        asyncio.run(run())
    assert [each["event"] for each in logged] == [
        "a last checkpoint took too long; the next owner counts again what it held"
    ]


def test_long_step_of_the_loop_is_measured() -> None:
    metrics = WorkerMetrics(COLLECTIONS)

    async def run() -> None:
        watching = asyncio.create_task(worker._watch_loop(metrics))
        await asyncio.sleep(0)
        time.sleep(worker.DEFAULT.loop + 0.2)  # noqa: ASYNC251 - the long step
        await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(run())
    value = metrics.registry.get_sample_value
    assert value("deniable_loop_delay_seconds_bucket", {"le": "0.1"}) == 0
    assert value("deniable_loop_delay_seconds_count") == 1


def test_defect_in_following_is_told_and_does_not_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the page would stand still, with a worker that says it is ready."""
    history, begun = EstimateHistory(COLLECTIONS.values()), asyncio.Semaphore(0)

    async def fails(*_: object) -> None:
        begun.release()
        raise ValueError("shapes")

    async def run() -> None:
        web = WebServer(COLLECTIONS, history, WorkerMetrics(COLLECTIONS), list)
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS))
        following = asyncio.create_task(worker._follow(history, web, owners, QUICK))
        async with asyncio.timeout(DEADLINE_SECONDS):
            for _ in range(9):  # three tasks, three times
                await begun.acquire()
        assert not following.done()
        following.cancel()

    for part in (history, Backfill, ChangeWatch):
        monkeypatch.setattr(part, "follow" if part is history else "run", fails)
    with capture_logs() as logged:
        asyncio.run(run())
    assert {each["event"] for each in logged} == {"estimates cannot be followed, trying again"}
    assert {each["log_level"] for each in logged} == {"error"}


def test_broker_lost_during_start_is_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Faust's start then fails, and the worker must not need a manual restart."""

    class Failing(Engine):
        async def maybe_start(self) -> None:
            raise KafkaConnectionError("gone")

        async def stop(self) -> None:
            stopped.append(self)

    stopped: list[Engine] = []
    engines: list[Engine] = [Failing(), Failing(), Engine()]
    monkeypatch.setattr(worker, "build_app", lambda *_: engines.pop(0))

    async def run() -> object:
        owners = Assignment(DEPLOYMENT, WorkerMetrics(COLLECTIONS))
        return await worker._started(DEPLOYMENT, owners, asyncio.Event(), QUICK)

    assert type(asyncio.run(run())) is Engine
    assert len(stopped) == 2


def test_worker_can_stop_while_the_engine_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting may take seconds, or forever without a broker; a second Ctrl-C must work meanwhile."""

    async def run() -> None:
        heard = asyncio.Event()

        async def start(*_: object) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await heard.wait()

        async def follow(*_: object) -> None:
            pass

        monkeypatch.setattr(worker, "_started", start)
        monkeypatch.setattr(worker, "_follow", follow)
        async with asyncio.timeout(DEADLINE_SECONDS):
            metrics = WorkerMetrics(COLLECTIONS)
            await worker.run_worker(DEPLOYMENT, metrics, 0, lambda _: None, stopping=heard.set)

    asyncio.run(run())
