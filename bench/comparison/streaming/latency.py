"""Delay from an event to the first estimate that includes it, while one worker is under load."""

import dataclasses
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaConsumer, TopicPartition

from bench.aggregator.deployments import RAPPOR_128, configure
from bench.comparison.streaming.visibility import Visibility, Watcher, Window
from bench.comparison.streaming.workers import LOOK_SECONDS, MeasurementError, Worker, look, workers_of
from deniable.config.file import Configuration
from deniable.deploy.broker.child_processes import Child, spawn, stop
from deniable.producers.opening.from_file import producer_config
from deniable.producers.producer import Producer

LOAD_REPORTS = 1000
WINDOW_SECONDS, GRACE_SECONDS = 2, 3
EVENTS_A_SECOND = 4
START_SECONDS, FINAL_SECONDS = 15.0, 15.0
#: `pack_seconds` of each producer, by the first letter of its collections.
PACK_SECONDS = {"e": 1.0, "q": 0.05}
PROBE = (
    "  - {{{{name: {name}, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35, q: 0.65,\n"
    "     candidates: [A, B], minimum_reports: 1, window_seconds: {window}, grace_seconds: {grace},\n"
    "     budget: none}}}}\n"
)


class Delays(NamedTuple):
    """Delays of events under one load.

    Parameters
    ----------
    events : by their producer's `pack_seconds`.
    counted : reports/s that the worker stored meanwhile.
    behind : packs appended but not stored at the end.
    worker_cores, broker_cores : mean number of cores used.
    """

    events: Mapping[float, Visibility]
    counted: float
    behind: float
    worker_cores: float
    broker_cores: float


def measure(
    folder: Path,
    servers: str,
    broker: Child,
    load: float,
    seconds: float,
    partitions: int = 4,
    events_a_second: int = EVENTS_A_SECOND,
) -> Delays:
    """Send events for some seconds, next to a load in reports/s.

    Each event of a window has a collection of its own: as many collections a producer as events in 2 s.

    Raises
    ------
    MeasurementError if the worker does not keep up with the load, or a child process ends; DeliveryError if
    an event cannot be sent.
    """
    configuration = configure(
        folder, servers, f"delay-{load:.0f}-", 1, RAPPOR_128 + _probes(events_a_second), partitions
    )
    events = {letter: Visibility() for letter in PACK_SECONDS}
    with ExitStack() as stack:
        generator = stack.enter_context(_load(configuration, folder, load, seconds))
        (worker,) = stack.enter_context(workers_of(configuration, folder, 1))
        watcher = Watcher(configuration, events, GRACE_SECONDS)
        watcher.start()
        stack.callback(watcher.end)
        # Producers close first, so they flush while everything else still runs.
        producers = {
            letter: stack.enter_context(_producer(configuration, folder / f"{letter}-{load:.0f}", letter))
            for letter in events
        }
        _wait_for(configuration, worker, load)
        before = look([worker], broker)
        _send(producers, events, seconds, events_a_second)
        after, behind = look([worker], broker), _appended(configuration) - worker.counted()
        _wait_for_finals(events, generator)
    passed = after.seconds - before.seconds
    return Delays(
        {PACK_SECONDS[letter]: visibility for letter, visibility in events.items()},
        LOAD_REPORTS * (after.counted[0] - before.counted[0]) / passed,
        behind,
        (after.worker_cpu - before.worker_cpu) / passed,
        (after.broker_cpu - before.broker_cpu) / passed,
    )


def _name(letter: str, step: int, events_a_second: int) -> str:
    """Return the collection for the event of this step; each has one event per window."""
    return f"{letter}{step % (WINDOW_SECONDS * events_a_second)}"


def _probes(events_a_second: int) -> str:
    return "".join(
        PROBE.format(name=_name(letter, step, events_a_second), window=WINDOW_SECONDS, grace=GRACE_SECONDS)
        for letter in PACK_SECONDS
        for step in range(WINDOW_SECONDS * events_a_second)
    )


def _wait_for(configuration: Configuration, worker: Worker, load: float) -> None:
    """Wait until the worker, which started after the load, is less than a second behind."""
    deadline = time.monotonic() + START_SECONDS
    while not (counted := worker.counted()) or _appended(configuration) - counted > load / LOAD_REPORTS:
        if time.monotonic() > deadline:
            behind = _appended(configuration) - counted
            raise MeasurementError(f"the worker was {behind:,.0f} packs behind after {START_SECONDS:.0f} s")
        time.sleep(LOOK_SECONDS)


def _appended(configuration: Configuration) -> int:
    """Return the number of packs in the log."""
    sources = [
        TopicPartition(configuration.topics.reports, each) for each in range(configuration.kafka.partitions)
    ]
    consumer = KafkaConsumer(bootstrap_servers=configuration.kafka.bootstrap_servers)
    try:
        return sum(consumer.end_offsets(sources).values())
    finally:
        consumer.close()


@contextmanager
def _load(configuration: Configuration, folder: Path, load: float, seconds: float) -> Iterator[Child]:
    """Run a child process that sends the load until all events are final."""
    arguments = [
        configuration.path,
        LOAD_REPORTS,
        load / LOAD_REPORTS,
        START_SECONDS + seconds + FINAL_SECONDS,
    ]
    program = [sys.executable, "-m", "bench.comparison.runners.ours.pack_load"]
    child = spawn([*program, *map(str, arguments)], folder / "load.log")
    try:
        yield child
    finally:
        stop([child])


def _producer(configuration: Configuration, folder: Path, letter: str) -> Producer:
    collections = [each for each in configuration.collections if each.name[0] == letter]
    config = producer_config(configuration, collections, data_dir=folder)
    return Producer(dataclasses.replace(config, pack_seconds=PACK_SECONDS[letter]))


def _send(
    producers: Mapping[str, Producer], events: Mapping[str, Visibility], seconds: float, events_a_second: int
) -> None:
    """Report events when they are due; the delay of a late one counts from when it was due."""
    first = int(time.time() * events_a_second) + 1
    for step in range(first, first + round(seconds * events_a_second)):
        due = (step + 0.5) / events_a_second
        time.sleep(max(0.0, due - time.time()))
        start = int(due // WINDOW_SECONDS) * WINDOW_SECONDS
        for letter, producer in producers.items():
            name = _name(letter, step, events_a_second)
            events[letter].note(Window(name, start), due)
            producer.report(name, "A", None, at=due)


def _wait_for_finals(events: Mapping[str, Visibility], generator: Child) -> None:
    """Wait for final estimates while the load goes on; those that come too late are missing."""
    deadline = time.monotonic() + FINAL_SECONDS
    while any(visibility.missing() for visibility in events.values()) and time.monotonic() < deadline:
        if generator.poll() is not None:
            raise MeasurementError(f"the load's generator ended with status {generator.returncode}")
        time.sleep(LOOK_SECONDS)
