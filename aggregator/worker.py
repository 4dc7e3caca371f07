"""One aggregator process: counts, estimates, and a web server, until a signal or a failure."""

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import structlog
from aiokafka.errors import KafkaError
from prometheus_client import disable_created_metrics

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.assignment import Assignment
from deniable.aggregator.partition.consumer import ExactApp
from deniable.aggregator.partition.faust_app import build_app
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.topics.collection_publisher import CollectionPublisher
from deniable.aggregator.views.backfill import Backfill
from deniable.aggregator.views.change_watch import ChangeWatch
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.comparison_api import Comparer, Comparisons
from deniable.aggregator.web.past_windows import PastWindows
from deniable.aggregator.web.rollup_api import RollUps
from deniable.aggregator.web.server import WebServer
from deniable.cluster.connection.outage import is_outage
from deniable.estimators.errors import DeniableError

#: Beside partitions, the parts of a worker that an outage concerns.
ENGINE, PAGE = "engine", "page"

log = structlog.get_logger()


@dataclass(frozen=True)
class WorkerTiming:
    """How long the worker itself waits. All in seconds, > 0.

    Parameters
    ----------
    stop : for the engine's stop and the last checkpoints.
    retry : before the engine is started, or estimates are followed, again after a failure.
    watch : between two checks that the worker may continue.
    loop : between two measurements of the event loop's delay.
    """

    stop: float = 10.0
    retry: float = 2.0
    watch: float = 0.5
    loop: float = 0.05


DEFAULT = WorkerTiming()


class WorkerError(DeniableError, RuntimeError):
    """The worker cannot continue; the message says why."""


async def run_worker(
    deployment: Deployment,
    metrics: WorkerMetrics,
    web_port: int,
    listening: Callable[[int], None],
    check: Callable[[], None] = lambda: None,
    stopping: Callable[[], None] = lambda: None,
    metrics_listen: tuple[str, int] | None = None,
    page_hosts: Sequence[str] = (),
    comparer: Comparer | None = None,
) -> None:
    """Work until SIGINT or SIGTERM, then write last checkpoints and leave the group.

    Parameters
    ----------
    deployment : to serve.
    metrics : of this worker.
    web_port : port of the page and of /metrics on loopback; 0 for a free one.
    listening : called with the page's port once all ports are open.
    check : called twice a second; raises if the worker must not continue.
    stopping : called when the stop begins; without a broker, Faust may never finish it.
    metrics_listen : another address and port for metrics and health.
    page_hosts : host names beside loopback's under which a proxy serves the page.
    comparer : compares periods for the page; without one it cannot.

    Raises
    ------
    WorkerError or the ledger's own error if the worker must not continue; PortInUseError.
    """
    stop, begin_to_stop = _on_signals(stopping)
    without_created: Callable[[], None] = disable_created_metrics
    without_created()  # else each counter has an undocumented second series
    assignment = Assignment(deployment, metrics)
    history = EstimateHistory(deployment.collections.values())
    past = PastWindows(deployment)
    routes = RollUps(past).routes() + (Comparisons(past, comparer).routes() if comparer else [])
    web = WebServer(
        deployment.collections,
        history,
        metrics,
        assignment.reasons_not_ready,
        deployment.limits,
        routes,
        page_hosts,
    )
    port = await web.start(web_port)
    if metrics_listen is not None:
        await web.open_probes(*metrics_listen)
    listening(port)
    publisher = CollectionPublisher(
        deployment.cluster,
        deployment.topics.collections,
        deployment.collections.values(),
        deployment.revision,
    )
    works = (
        _follow(history, web, assignment),
        _watch_loop(metrics),
        publisher.run(lambda: assignment.is_counting),
        assignment.markers.run(),
        assignment.relays.run(),
    )
    tasks = [asyncio.create_task(each) for each in works]
    for task in tasks:
        task.add_done_callback(assignment.note_end)
    app = None
    try:
        app = await _started(deployment, assignment, stop)
        if app is not None:
            await _serve(app, assignment, history, check, stop)
    finally:
        begin_to_stop()
        for task in tasks:
            task.cancel()
        await _stop(app, assignment)
        await web.stop()


def _on_signals(stopping: Callable[[], None]) -> tuple[asyncio.Event, Callable[[], None]]:
    """An event set by the first signal, and a function that sets it."""
    stop = asyncio.Event()

    def begin() -> None:
        if not stop.is_set():
            stop.set()
            stopping()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, begin)
    return stop, begin


async def _started(
    deployment: Deployment, assignment: Assignment, stop: asyncio.Event, timing: WorkerTiming = DEFAULT
) -> ExactApp | None:
    """A running app; None when stopping. Retries, since Faust gives up if the broker goes away."""
    while not stop.is_set():
        app = build_app(deployment, assignment)
        try:
            await app.maybe_start()
            assignment.outage.answered(ENGINE)
            return app
        except KafkaError as error:
            if is_outage(error):
                assignment.outage.failed(ENGINE, error)
            else:
                log.warning("the engine cannot start, trying again", error=str(error))
            await _stop(app, None, timing)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), timing.retry)
    return None


async def _serve(
    app: ExactApp,
    assignment: Assignment,
    history: EstimateHistory,
    check: Callable[[], None],
    stop: asyncio.Event,
    timing: WorkerTiming = DEFAULT,
) -> None:
    while not stop.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), timing.watch)
        assignment.metrics.unattributed.log_new(asyncio.get_running_loop().time())
        assignment.metrics.other_parameters.log_new(asyncio.get_running_loop().time())
        assignment.log_start()
        assignment.show_standstills()
        await assignment.show_estimates(history.newest)
        check()
        if assignment.failed.done():
            assignment.failed.result()
        if app.should_stop:
            raise WorkerError(f"the engine stopped by itself: {app.crash_reason!r}") from app.crash_reason


async def _stop(app: ExactApp | None, assignment: Assignment | None, timing: WorkerTiming = DEFAULT) -> None:
    try:
        async with asyncio.timeout(timing.stop):
            if assignment is not None:
                await assignment.finish()
            if app is not None:
                await app.stop()
    except TimeoutError:
        log.warning("stopping took too long; what was not stored is counted again by the next owner")


async def _watch_loop(metrics: WorkerMetrics, timing: WorkerTiming = DEFAULT) -> None:
    """Measure how late the event loop wakes a task."""
    while True:
        before = time.monotonic()
        await asyncio.sleep(timing.loop)
        metrics.loop_delay.observe(max(0.0, time.monotonic() - before - timing.loop))


async def _follow(
    history: EstimateHistory, web: WebServer, assignment: Assignment, timing: WorkerTiming = DEFAULT
) -> None:
    """Follow new estimates, find the newest ones published before, and look for changes of shares."""
    deployment, metrics, outage = assignment.deployment, assignment.metrics, assignment.outage
    topic, partitions = deployment.topics.estimates, deployment.topics.partitions
    collections = deployment.collections.values()

    def show_changes(name: str, changes: Sequence[ShareChange], newest: Mapping[str, float]) -> None:
        metrics.changes.show(name, changes)
        web.page.show_changes(name, changes, newest)

    while True:
        watch = ChangeWatch(collections, show_changes)

        def show(record: EstimateRecord, watch: ChangeWatch = watch) -> None:
            web.page.show(record)
            watch.take(record)

        backfill = Backfill(history, [each.name for each in collections], show)

        async def find(backfill: Backfill = backfill) -> None:
            await backfill.run(deployment.cluster, topic, partitions)
            outage.answered(PAGE)

        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(history.follow(deployment.cluster, topic, partitions, show))
                tasks.create_task(find())
                tasks.create_task(watch.run(deployment.cluster, deployment.topics))
        except* (KafkaError, OSError) as failure:
            (error, *_) = failure.exceptions
            if is_outage(error):
                outage.failed(PAGE, error)
            else:
                log.warning("estimates cannot be followed, trying again", error=repr(error))
        except* Exception as failure:  # else the page would stand still, and nothing would say why
            log.error("estimates cannot be followed, trying again", exc_info=failure.exceptions[0])
        await asyncio.sleep(timing.retry)
