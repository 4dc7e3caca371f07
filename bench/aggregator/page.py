"""When a worker's page is seen in Chromium, and when an event is on it."""

import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from bench.sections import ResultRow, Section
from deniable import open_producer
from deniable.deploy.broker.broker import Broker
from deniable.producers.producer import Producer
from tests.support.aggregator.browser import chromium, watched
from tests.support.aggregator.builders import T0
from tests.support.aggregator.page.crowd import VALUES, crowd, crowd_estimates
from tests.support.aggregator.page.first_paint import GOAL_MILLISECONDS, load_times
from tests.support.aggregator.served import Served, set_clock
from tests.support.deployments import Deployment

COLLECTIONS, WINDOWS, LOADS = 100, 5, 20
SEEN = {
    "first_paint": "first contentful paint: the page's head",
    "list": "the list of collections",
    "table": "the first collection's table",
    "tables": "the second one's, too",
}
EVENTS, PARTITIONS, PACK_SECONDS, GOAL_SECONDS = 60, 8, 0.1, 1.0
#: Before each event, so that none waits for the one before.
PAUSES = np.random.default_rng(1).uniform(1.5, 3.0, EVENTS + 1).tolist()
#: Until the collection's number of reports is that one; then the time, milliseconds since 1970.
SHOWN = """([section, reports]) => new Promise((seen) => {
  const look = () => section.querySelector(".reports")?.innerText === reports
    ? seen(Date.now()) : requestAnimationFrame(look);
  look();
})"""


def measured() -> list[dict[str, float]]:
    """Return the times of each load, milliseconds since the navigation began."""
    collections, patching = crowd(COLLECTIONS), pytest.MonkeyPatch.context()
    with patching as patch, Served(collections).serving() as served, chromium() as browser:
        set_clock(patch, T0 + 11)
        served.take(*crowd_estimates([*collections.values()], WINDOWS))
        return [load_times(browser, served.address) for _ in range(LOADS)]


def rows(loads: list[dict[str, float]]) -> list[ResultRow]:
    """Return a line of the table for each thing that is seen."""
    found: list[ResultRow] = []
    for name, what in SEEN.items():
        times = [load[name] for load in loads]
        figures = {"least, ms": min(times), "median, ms": median(times), "most, ms": max(times)}
        found.append({"seen": what, **figures})
    return found


def event_seconds() -> list[float]:
    """Return how long after `record` each event was on the page of a worker that a browser watches."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        made = Deployment(Path(name), broker.bootstrap_servers, "page-")
        file = made.folder / "deniable.yaml"
        text = file.read_text(encoding="utf-8").replace("partitions: 2", f"partitions: {PARTITIONS}")
        text = text.replace("window_seconds: 2", "window_seconds: 86400")
        file.write_text(text.replace("pack_seconds: 0.2", f"pack_seconds: {PACK_SECONDS}"), encoding="utf-8")
        made.create_topics()
        with (
            chromium() as browser,  # whose driver allows no other event loop in this thread
            made.started("worker.log", "aggregate", "--web-port", "0"),
            watched(browser, made.address("worker.log")) as shown,
            open_producer(file) as producer,
        ):
            made.wait_until_ready("worker.log")
            section = shown.section("carrier").element_handle()
            return [_seen_after(producer, shown.page, section, number) for number in range(EVENTS + 1)][1:]


def _seen_after(producer: Producer, page: Any, section: Any, before: int) -> float:
    """Report one event, which `before` others precede; return the seconds until the page shows it."""
    time.sleep(PAUSES[before])
    began = time.time()
    producer.record("carrier", "AA", client=f"client-{before}")
    return float(page.evaluate(SHOWN, [section, f"{before + 1:,}"])) / 1000 - began


def loads() -> Section:
    """Load the page of many collections."""
    about = (
        f"Milliseconds from the start of the navigation until the page shows something, with {COLLECTIONS} "
        f"collections of {VALUES:,} values, {WINDOWS} windows each, in {LOADS} loads without a cache. "
        f"Chromium and the worker share the machine, and what else runs there only adds. Goal: the least "
        f"first contentful paint below {GOAL_MILLISECONDS} ms."
    )
    found = rows(measured())
    least = float(found[0]["least, ms"])
    return Section(about, found, missed=[f"it is {least:.0f} ms"] if least >= GOAL_MILLISECONDS else [])


def events() -> Section:
    """Wait for single events on a page."""
    about = (
        f"Seconds from `record` of one event until the page shows it: {EVENTS} events, {PARTITIONS} "
        f"partitions, `pack_seconds: {PACK_SECONDS:g}`. Goal: half of them within {GOAL_SECONDS:g} s."
    )
    seconds = event_seconds()
    p50, p90, most = np.quantile(seconds, [0.5, 0.9, 1.0])
    row = {"events": len(seconds), "p50, s": p50, "p90, s": p90, "most, s": most}
    return Section(about, [row], missed=[f"it is {p50:.2f} s"] if p50 >= GOAL_SECONDS else [])


CASES = {"the page": loads, "an event": events}
