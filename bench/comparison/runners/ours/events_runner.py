"""Our producer as an application uses it: one event a call, until it is in the outbox.

Kafka is away, so everything that is recorded waits in the outbox, whose limit is out of reach.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar, cast

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.pipeline.queueing.submission import Submission
from deniable.producers.pipeline.recording.event_buffer import FIELDS
from deniable.producers.producer import Producer

LIBRARY = "deniable"
VALUES = tuple(f"value {number}" for number in range(100))
CLIENTS = [f"client-{number}" for number in range(10_000)]
CALLS = 10_000
KRR_100 = KRR.from_epsilon(len(VALUES), 2.0)
RAPPOR_128 = Rappor.from_probabilities(128, 2, 8, 0.5, 0.5, 0.75)
MOST_IN_WINDOW = 65_535
EVENTS = Collection("events", KRR_100, values=VALUES, window_seconds=3600, grace_seconds=3600)
WORDS = Collection("events", RAPPOR_128, memoize=True, window_seconds=3600, grace_seconds=3600)
ALLOWANCES = {
    "k-RR": Allowance(EVENTS, None),
    "RAPPOR": Allowance(WORDS, None, MOST_IN_WINDOW),
    "budget": Allowance(
        EVENTS,
        Budget(epsilon=1e6, delta=1e-6, period_seconds=86_400),
        MOST_IN_WINDOW,
    ),
}
Call = tuple[str, str | None]
Result = TypeVar("Result")


class _Opened:
    """A producer whose Kafka is away, in a temporary folder, until `close`; its process uses all cores."""

    def __init__(self, kind: str, servers: str = "127.0.0.1:9", topic: str = "reports") -> None:
        logging.getLogger("deniable.producers").setLevel(logging.ERROR)
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        self._folder = TemporaryDirectory()
        self.producer = Producer(
            ProducerConfig(
                allowances=(ALLOWANCES[kind],),
                bootstrap_servers=servers,
                topic=topic,
                partitions=4,
                data_dir=Path(self._folder.name) / "data",
                outbox_bytes=2**40,
                block_milliseconds=60_000,
            )
        )
        clients: list[str | None] = [None] if kind == "k-RR" else [*CLIENTS]
        self.calls: list[Call] = [
            (VALUES[number * 7 % len(VALUES)], clients[number * 31 % len(clients)]) for number in range(CALLS)
        ]

    def counts(self) -> dict[str, int]:
        """Outcomes of all events so far."""
        counters = self.producer.counters()
        return {
            "stored": sum(counters.stored.values()),
            "dropped": sum(counters.dropped.values()),
            "refused": sum(counters.refused.values()),
        }

    def close(self) -> None:
        """Close it and delete its folder."""
        with suppress(DeliveryError):
            self.producer.close(0.0)
        self._folder.cleanup()


def sustained(count: int, kind: str, rate: float) -> Callable[[], object]:
    """Record `count` events, `rate` a second, on all cores; the time ends when all are stored."""

    def run() -> object:
        with closing(_Opened(kind)) as opened:
            began = time.perf_counter()
            _paced(opened.producer, opened.calls, count, rate)
            called = time.perf_counter() - began
            opened.producer.save(600.0)
            return {**opened.counts(), "called": called, "seconds": time.perf_counter() - began}

    return run


def _paced(producer: Producer, calls: list[Call], count: int, rate: float) -> None:
    """Record in bursts of a millisecond; between them this thread sleeps, as one that serves requests."""
    record, burst, began, done = producer.record, int(rate / 1000), time.perf_counter(), 0
    while done < count:
        if done > (time.perf_counter() - began) * rate:
            time.sleep(0.0005)
            continue
        first = done % (CALLS - burst)
        for value, client in calls[first : first + burst]:
            record("events", value, client)
        done += burst


def loop(count: int, threads: int = 1) -> Callable[[], object]:
    """Record `count` events as fast as the threads can, on all cores; the time of the calls alone counts."""

    def run() -> object:
        with closing(_Opened("k-RR")) as opened:
            seconds = _in_threads(threads, lambda: _looped(opened, count // threads))
            opened.producer.save(600.0)
            return {**opened.counts(), "seconds": seconds}

    return run


def _looped(opened: _Opened, count: int) -> None:
    record = opened.producer.record
    for _, (value, client) in zip(range(count), cycle(opened.calls), strict=False):
        record("events", value, client)


def latencies(count: int, rate: float) -> Callable[[], object]:
    """Time each of `count` calls, `rate` a second, in nanoseconds, sorted, beside the threads behind them."""

    def run() -> object:
        with closing(_Opened("k-RR")) as opened:
            took: list[int] = []
            record, clock, began = opened.producer.record, time.perf_counter_ns, time.perf_counter()
            for number in range(count):
                while (number - 100) > (time.perf_counter() - began) * rate:
                    time.sleep(0.0005)
                value, client = opened.calls[number % CALLS]
                before = clock()
                record("events", value, client)
                took.append(clock() - before)
            took.sort()
            ranks = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
            return {name: took[int(rank * count)] for name, rank in ranks.items()} | opened.counts()

    return run


def report(count: int, threads: int) -> Callable[[], object]:
    """Call `report` with one value `count` times, which waits for the disk, from several threads."""

    def run() -> object:
        with closing(_Opened("k-RR")) as opened:

            def calls() -> None:
                for value, client in opened.calls[: count // threads]:
                    opened.producer.report("events", value, client)

            seconds = _in_threads(threads, calls)
            return {**opened.counts(), "seconds": seconds}

    return run


def _in_threads(threads: int, work: Callable[[], None]) -> float:
    """Run it in several threads; return the seconds until the last is done."""
    started = [threading.Thread(target=work) for _ in range(threads)]
    began = time.perf_counter()
    for each in started:
        each.start()
    for each in started:
        each.join()
    return time.perf_counter() - began


def called(count: int, servers: str, topic: str) -> Callable[[], object]:
    """Record `count` events with Kafka there, as fast as one thread can; then wait until Kafka has all."""

    def run() -> object:
        with closing(_Opened("k-RR", servers, topic)) as opened:
            began = time.perf_counter()
            _looped(opened, count)
            seconds = time.perf_counter() - began
            opened.producer.flush(120.0)
            return {**opened.counts(), "seconds": seconds, "flushed": time.perf_counter() - began}

    return run


def profile(count: int, kind: str) -> Callable[[], object]:
    """Take `count` events through each step, one step after the other; processor time by step, seconds."""

    def run() -> object:
        with closing(_Opened(kind)) as opened:
            return _profiled(opened, count)

    return run


def _profiled(opened: _Opened, count: int) -> dict[str, float]:
    recorder, randomization = opened.producer._recorder, opened.producer._randomization
    pipeline, took = opened.producer._pipeline, {}
    recorder._wake_above = count * FIELDS  # its thread stays asleep

    def step(name: str, work: Callable[[], Result]) -> Result:
        began = time.process_time()
        result = work()
        took[name] = time.process_time() - began
        return result

    def stored(submissions: list[Submission]) -> None:
        for each in submissions:
            pipeline.put(each, 60.0)
        for each in submissions:
            each.done.wait(60.0)

    step("the call", lambda: _looped(opened, count))
    events = step("taking and checking", lambda: recorder._buffers["events"].take().with_clients().in_time())
    clients = None if events.clients[0] is None else cast("list[str]", events.clients)
    submissions = step(
        "randomizing",
        lambda: list(randomization.submissions("events", events.values, clients, events.times)),
    )
    step("charging, packing and storing", lambda: stored(submissions))
    return took


JOBS = {
    "profile": profile,
    "sustained": sustained,
    "loop": loop,
    "latencies": latencies,
    "report": report,
    "called": called,
}
