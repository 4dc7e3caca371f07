"""The demo: Kafka, workers, producers, edge and relay on real data, and a verdict on the results."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import click
from rich.console import Console
from rich.live import Live

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.maintenance.replay import Comparison, replay
from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.probe import probe
from deniable.cluster.reading.partition_reader import RowReader
from deniable.config.file import Configuration
from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import Child, last_lines, stop
from deniable.deploy.broker.locked_folder import HeldFolder
from deniable.deploy.cluster.deployment import deployment_of
from deniable.deploy.cluster.topics import setup as topic_setup
from deniable.deploy.demo.canary import CanaryVerdict, judge_canary
from deniable.deploy.demo.devices import DeviceServices, devices_config, opened_page, start_services
from deniable.deploy.demo.flights import FlightAnswer, Flights, load_flights
from deniable.deploy.demo.found_texts import JudgedTexts
from deniable.deploy.demo.number_verdict import judge_number
from deniable.deploy.demo.setup import DemoError, announced, configure, rollup_command, start
from deniable.deploy.demo.stream import DEVICES_TAKE, DemoStream
from deniable.deploy.demo.verdict import Judged, JudgedCollection, faults
from deniable.deploy.demo.view import live_view, truth_table, verdict
from deniable.deploy.services.metrics_server import served
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer
from deniable.protocol.topic_names import Topics

WORKERS = 2
STREAM_SECONDS = {True: 25.0, False: 60.0}  # with --once, and watched in a terminal
VERDICT_SECONDS = 40.0
REFRESH_SECONDS = 1.0
STALLED_SECONDS = 60.0  # without a further count, after all was sent: some reports came too late
BLOCK_MILLISECONDS = 30_000.0  # the demo has nothing else to do meanwhile
PROGRESS_SECONDS = 5.0


def run_demo(*, once: bool, opens_browser: bool, cluster: Cluster | None) -> None:
    """Run the whole path on the flights, until done if `once`, else until Ctrl-C.

    With `opens_browser`, visitors of a page may send reports, too.

    Raises
    ------
    DemoError if counts, intervals or discoveries are not as promised.
    """
    flights = load_flights()
    with ExitStack() as stack:
        folder = stack.enter_context(HeldFolder())
        if cluster is None:
            _print("starting Kafka …")
            cluster = Cluster(stack.enter_context(Broker()).bootstrap_servers)
        probe(cluster)
        configuration = configure(folder, cluster, flights)
        topic_setup.create(cluster, configuration.topics, configuration.kafka.replication_factor)
        _print(f"Kafka is at {cluster.bootstrap_servers}; starting {WORKERS} workers …")
        logs = [folder / f"worker-{number}.log" for number in range(WORKERS)]
        workers = [start(configuration, log, "aggregate", "--web-port", "0") for log in logs]
        stack.callback(stop, workers)
        services = start_services(configuration, folder, try_page=opens_browser)
        stack.callback(stop, list(services.children.values()))
        pages = [announced(worker, log, "page") for worker, log in zip(workers, logs, strict=True)]
        children = {**dict(zip(logs, workers, strict=True)), **services.children}
        demo = Demo(configuration, flights, children, pages, services)
        asyncio.run(demo.run(once=once))


class Demo:
    """One run: the stream, the live view of the workers' counts, and the verdict."""

    def __init__(
        self,
        configuration: Configuration,
        flights: Flights,
        children: dict[Path, Child],
        pages: list[str],
        services: DeviceServices,
    ) -> None:
        self.configuration = configuration
        self.flights = flights
        self.children = children
        self.pages = pages
        self.services = services
        self.console = Console()
        self.merged = MergedCounts()

    async def run(self, *, once: bool) -> None:
        """Stream, show, judge; then keep the page up until Ctrl-C unless `once`."""
        producer = Producer(producer_config(self.configuration, block_milliseconds=BLOCK_MILLISECONDS))
        for page in self.pages:
            _print(f"metrics: {page}metrics")
        devices = Producer(devices_config(self.configuration, self.services.edge, BLOCK_MILLISECONDS))
        _print(f"one flight in {DEVICES_TAKE} goes over HTTP: {self.services.edge}/v1/reports")
        if self.services.try_page is not None:
            _print(await asyncio.to_thread(opened_page, self.services.try_page))
        with served(0, producer, err=True):
            canary = self.configuration.collection("canary")
            await self._stream(DemoStream(producer, devices, self.flights, canary, STREAM_SECONDS[once]))
            if not once:
                start = min(window_start for _, window_start in self.merged.windows())
                command = rollup_command(self.configuration, "carrier", start)
                _print(f"All final windows of carrier as one answer: {command}")
                _print(f"The page stays up: {self.pages[0]}  (Ctrl-C ends the demo)")
                await asyncio.Event().wait()

    async def _stream(self, stream: DemoStream) -> None:
        stream.start()
        following = [asyncio.create_task(self._follow(home)) for home in range(self._topics.partitions)]
        try:
            await self._show(stream, following)
            await self._judge(stream)
        finally:
            stream.stopped.set()
            for task in following:
                task.cancel()

    async def _show(self, stream: DemoStream, following: list[asyncio.Task[None]]) -> None:
        addresses = [f"live page: {self.pages[0]}", f"metrics: {self.pages[0]}metrics"]
        live = Live(console=self.console, auto_refresh=False, screen=False)
        shown_at, counted, counted_at = 0.0, 0, time.monotonic()
        with live if self.console.is_terminal else ExitStack():
            while not (stream.finished and self._counted() >= stream.accepted()):
                await asyncio.sleep(REFRESH_SECONDS)
                self._check_alive(stream, following)
                flights, before, counted = len(self.flights.carriers), counted, self._counted()
                if counted > before or not stream.finished:
                    counted_at = time.monotonic()
                elif time.monotonic() - counted_at > STALLED_SECONDS:
                    return  # the verdict names what is missing
                sent = f"{stream.sent:,} of {flights:,} flights sent"
                status = f"{sent}, {counted:,} reports counted (canary included)"
                if self.console.is_terminal:
                    judged = await self._judged(self.merged, stream.sent)
                    live.update(live_view(judged, status, addresses, *self.console.size), refresh=True)
                elif time.monotonic() - shown_at >= PROGRESS_SECONDS:
                    shown_at = time.monotonic()
                    _print(status)

    async def _judge(self, stream: DemoStream) -> None:
        """Check all that the demo promises; print `demo: ok` or raise."""
        _print("all counted; waiting for the final estimates, then recounting the log …")
        comparison = await self._settled()
        judged = await self._judged(comparison.counts, stream.sent)
        for one in judged:
            self.console.print(truth_table(one, missed=set(one.misses())))
        canary = self._judged_canary(comparison)
        texts = await asyncio.to_thread(self._judged_texts, comparison, stream.sent)
        for sentence in [*verdict(judged), texts.sentence(), canary.sentence()]:
            self._say(sentence)
        wrong = [*self._count_faults(stream, comparison), *faults(judged), *texts.faults(), *canary.faults()]
        if wrong:
            raise DemoError("demo: failed\n" + "\n".join(wrong))
        self._say(
            f"every report counted exactly once: {comparison.records:,} packs replayed from offset 0, "
            f"difference: {comparison.difference}"
        )
        self._say(f"{stream.by_devices():,} of the reports came over HTTP, and were shuffled by the relay")
        self._say("demo: ok")

    def _say(self, sentence: str) -> None:
        """Print a sentence, wrapped at words in a terminal, in one line for programs."""
        self.console.print(sentence, soft_wrap=not self.console.is_terminal)

    async def _settled(self) -> Comparison:
        """Recount as soon as every window has its final estimate."""
        deployment = await asyncio.to_thread(deployment_of, self.configuration)
        deadline = time.monotonic() + VERDICT_SECONDS
        while True:
            comparison = await replay(deployment, VERDICT_SECONDS)
            windows = sum(self._is_published(comparison, window) for window in comparison.counts.windows())
            if comparison.finals == windows:
                return comparison
            if time.monotonic() > deadline:
                raise DemoError(f"demo: failed\nonly {comparison.finals} of {windows} windows became final")
            await asyncio.sleep(REFRESH_SECONDS)

    def _is_published(self, comparison: Comparison, window: tuple[int, int]) -> bool:
        collection = self.configuration.by_fingerprint()[window[0]]
        return comparison.counts.totals(window, collection).reports >= collection.minimum_reports

    def _judged_canary(self, comparison: Comparison) -> CanaryVerdict:
        collection, counts = self.configuration.collection("canary"), comparison.counts
        final = [
            counts.totals(window, collection).counts[0]
            for window in counts.windows()
            if window[0] == collection.fingerprint and self._is_published(comparison, window)
        ]
        return judge_canary(collection.name, final, cast(KRR, collection.mechanism))  # as its entry says

    def _judged_texts(self, comparison: Comparison, sent: int) -> JudgedTexts:
        collection = self.configuration.collection("destination-found")
        return JudgedTexts(
            collection, comparison.counts.all_windows(collection), self.flights.destinations[:sent]
        )

    def _count_faults(self, stream: DemoStream, comparison: Comparison) -> list[str]:
        wrong = []
        if comparison.difference:
            wrong.append(f"counts differ from a replay of the log: difference: {comparison.difference}")
        for collection in self.configuration.collections:
            sent, acknowledged = stream.sent_to(collection.name), stream.reports_of(collection.name)
            counted = comparison.counts.all_windows(collection).reports
            visitors = max(0, counted - acknowledged) if self.services.try_page else 0
            if not sent == acknowledged == counted - visitors:
                wrong.append(
                    f"{collection.name}: {sent} reports sent, {acknowledged} acknowledged, {counted} counted"
                )
        return wrong

    async def _judged(self, counts: MergedCounts, sent: int) -> list[Judged]:
        """Estimate over all windows together (counts add), beside the truth of the flights sent so far."""
        judged: list[Judged] = []
        for name, answers in self.flights.answers().items():
            collection = self.configuration.collection(name)
            totals = counts.all_windows(collection)
            if totals.reports and collection.entries:
                estimate = await asyncio.to_thread(window_estimate.estimate, collection, totals)
                judged.append(_judged_by(collection, estimate, answers[:sent]))
        return judged

    async def _follow(self, home: int) -> None:
        async with RowReader(self.configuration.cluster, self._topics.counts, home, follows=True) as reader:
            while True:
                for record in await reader.poll():
                    self.merged.apply(record.key or b"", record.value)

    def _counted(self) -> int:
        return sum(self.merged.all_windows(one).reports for one in self.configuration.collections)

    def _check_alive(self, stream: DemoStream, following: list[asyncio.Task[None]]) -> None:
        for log, child in self.children.items():
            if child.poll() is not None:
                raise DemoError(f"demo: failed\na process ended by itself:\n{last_lines(log)}")
        for task in following:
            if task.done():
                task.result()
        stream.check()

    @property
    def _topics(self) -> Topics:
        return self.configuration.topics


def _judged_by(collection: Collection, estimate: Estimate, answers: Sequence[FlightAnswer | None]) -> Judged:
    """Put an estimate beside the answers that were sent."""
    if collection.number is not None:
        numbers = [float(each) for each in answers if isinstance(each, int | float)]
        return judge_number(collection, estimate, numbers)
    labels = (" / ".join(each) if isinstance(each, tuple) else str(each) for each in answers)
    return JudgedCollection(collection, estimate, Counter(labels))


def _print(text: str) -> None:
    click.echo(text, err=True)
