"""How long it takes from an event to the estimate that shows it, while one worker is half loaded."""

import dataclasses
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaConsumer, KafkaProducer

from aggregator import estimate_record
from bench.contest.parts.visibility import Visibility, Window
from bench.contest.parts.workers import LOOK_SECONDS, Worker, WorkerError, look, workers_of
from bench.deployments import RAPPOR_128, configure, payload_of, send
from deploy.children import Child, spawn, stop
from deploy.collection_file import Configuration
from deploy.producer_setup import producer_config
from producers.producer import Producer

LOAD_REPORTS = 1000
WINDOW_SECONDS, GRACE_SECONDS = 2, 3
EVENTS_A_SECOND = 4
START_SECONDS, SETTLE_SECONDS, FINAL_SECONDS = 30.0, 2.0, 20.0
#: By the first letter of its collections, how long a producer waits for more to fill a pack.
PACK_SECONDS = {"e": 1.0, "q": 0.05}
PROBE = (
    "  - {{{{name: {name}, mechanism: rappor, bits: 128, hashes: 2, cohorts: 8, f: 0.25, p: 0.35, q: 0.65,\n"
    "     candidates: [A, B], minimum_reports: 1, window_seconds: {window}, grace_seconds: {grace},\n"
    "     budget: none}}}}\n"
)


class Delays(NamedTuple):
    """What was seen.

    Parameters
    ----------
    events : by how many seconds their producer waits for more to fill a pack.
    load : reports/s that were asked of the load's generator.
    counted : reports/s that the worker stored meanwhile.
    worker_cores, broker_cores : that they took meanwhile.
    """

    events: Mapping[float, Visibility]
    load: float
    counted: float
    worker_cores: float
    broker_cores: float


class Watcher(threading.Thread):
    """A read_committed consumer of the estimates that notes when it has which."""

    def __init__(self, configuration: Configuration, events: Mapping[str, Visibility]) -> None:
        super().__init__(daemon=True)
        self._events = events
        self._ended = threading.Event()
        self._consumer = KafkaConsumer(
            configuration.topics.estimates,
            bootstrap_servers=configuration.kafka.bootstrap_servers,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            group_id=None,
        )

    def run(self) -> None:
        """Read until told to end."""
        while not self._ended.is_set():
            for records in self._consumer.poll(timeout_ms=100).values():
                moment = time.time()
                for record in records:
                    found = estimate_record.decode(record.value)
                    if found.collection[0] in self._events:
                        self._events[found.collection[0]].take(found, moment, GRACE_SECONDS)
        self._consumer.close()

    def end(self) -> None:
        """Read no more."""
        self._ended.set()
        self.join()


def measure(folder: Path, servers: str, broker: Child, load: float, seconds: float) -> Delays:
    """Send events for so many seconds beside a load of so many reports/s.

    Raises
    ------
    WorkerError if the worker, or the load's generator, ends; DeliveryError if an event cannot be sent.
    """
    configuration = configure(folder, servers, "delay-", 1, RAPPOR_128 + _probes())
    events = {letter: Visibility() for letter in PACK_SECONDS}
    with ExitStack() as stack:
        (worker,) = stack.enter_context(workers_of(configuration, folder, 1))
        _wait_for(configuration, worker)
        generator = stack.enter_context(_load(configuration, folder, load, seconds))
        watcher = Watcher(configuration, events)
        watcher.start()
        stack.callback(watcher.end)
        producers = {
            letter: stack.enter_context(_producer(configuration, folder / letter, letter))
            for letter in events
        }
        time.sleep(SETTLE_SECONDS)
        before = look([worker], broker)
        _send(producers, events, seconds)
        after = look([worker], broker)
        _wait_for_finals(events, generator)
    passed = after.seconds - before.seconds
    return Delays(
        {PACK_SECONDS[letter]: visibility for letter, visibility in events.items()},
        load,
        LOAD_REPORTS * (after.counted[0] - before.counted[0]) / passed,
        (after.worker_cpu - before.worker_cpu) / passed,
        (after.broker_cpu - before.broker_cpu) / passed,
    )


def _name(letter: str, step: int) -> str:
    """Collection of the event of this step: each has one event in each of its windows."""
    return f"{letter}{step % (WINDOW_SECONDS * EVENTS_A_SECOND)}"


def _probes() -> str:
    return "".join(
        PROBE.format(name=_name(letter, step), window=WINDOW_SECONDS, grace=GRACE_SECONDS)
        for letter in PACK_SECONDS
        for step in range(WINDOW_SECONDS * EVENTS_A_SECOND)
    )


def _wait_for(configuration: Configuration, worker: Worker) -> None:
    """Until the worker has stored a first pack."""
    collection = configuration.collections[0]
    with KafkaProducer(bootstrap_servers=configuration.kafka.bootstrap_servers) as kafka:
        send(kafka, configuration, collection, payload_of(collection, 1), 1)
    deadline = time.monotonic() + START_SECONDS
    while not worker.counted():
        if time.monotonic() > deadline:
            raise WorkerError(f"a worker did not count within {START_SECONDS:.0f} s: {worker.last_line()}")
        time.sleep(LOOK_SECONDS)


@contextmanager
def _load(configuration: Configuration, folder: Path, load: float, seconds: float) -> Iterator[Child]:
    """A child that sends the load, longer than events are sent and waited for."""
    arguments = [configuration.path, LOAD_REPORTS, load / LOAD_REPORTS, seconds + FINAL_SECONDS]
    program = [sys.executable, "-m", "bench.contest.runners.pack_load"]
    child = spawn([*program, *map(str, arguments)], folder / "load.log")
    try:
        yield child
    finally:
        stop([child])


def _producer(configuration: Configuration, folder: Path, letter: str) -> Producer:
    collections = [each for each in configuration.collections if each.name[0] == letter]
    config = producer_config(configuration, collections, data_dir=folder)
    return Producer(dataclasses.replace(config, pack_seconds=PACK_SECONDS[letter]))


def _send(producers: Mapping[str, Producer], events: Mapping[str, Visibility], seconds: float) -> None:
    """Report events when they are due; one that is reported late has been waiting since it was due."""
    first = int(time.time() * EVENTS_A_SECOND) + 1
    for step in range(first, first + round(seconds * EVENTS_A_SECOND)):
        due = (step + 0.5) / EVENTS_A_SECOND
        time.sleep(max(0.0, due - time.time()))
        start = int(due // WINDOW_SECONDS) * WINDOW_SECONDS
        for letter, producer in producers.items():
            events[letter].note(Window(_name(letter, step), start), due)
            producer.report(_name(letter, step), "A", None, at=due)


def _wait_for_finals(events: Mapping[str, Visibility], generator: Child) -> None:
    """While the load goes on; what does not come in time is missing."""
    while any(visibility.missing() for visibility in events.values()) and generator.poll() is None:
        time.sleep(LOOK_SECONDS)
