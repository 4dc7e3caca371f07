"""OpenTelemetry: a counter's `add` with one attribute of 100 values, collected at the end."""

import os
import time
from collections.abc import Callable

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

LIBRARY = "opentelemetry-sdk"


def called(count: int, **_: str) -> Callable[[], object]:
    """Add this many times; then collect."""

    def run() -> object:
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
        reader = InMemoryMetricReader()
        counter = MeterProvider([reader]).get_meter("bench").create_counter("events")
        values = [f"value {number}" for number in range(100)]
        began = time.perf_counter()
        for number in range(count):
            counter.add(1, {"value": values[number % 100]})
        seconds = time.perf_counter() - began
        reader.collect()
        return {"seconds": seconds, "flushed": time.perf_counter() - began}

    return run


JOBS = {"called": called}
