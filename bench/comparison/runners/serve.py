"""A child that does jobs when told: python -m bench.comparison.runners.serve RUNNER

A runner is a module within this folder, such as `peers.numpy_runner`, with LIBRARY, the name of a
distribution, and JOBS by name. Each is called with a count and parameters, and returns a function that does
the job so many times; what that returns must be JSON, or None.

One JSON object a line comes in, one goes out: {"job", "count", "parameters"} prepares, {} does it and
answers {"cpu_seconds", "seconds", "result"}. An error of the library is answered as {"error"}.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import version
from typing import Protocol


class Runner(Protocol):
    """What a module of this folder offers."""

    LIBRARY: str
    JOBS: Mapping[str, Callable[..., Callable[[], object]]]


def main(name: str) -> None:
    """Answer until the other side closes, on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")
    # What a library prints must not stand between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    runner: Runner = import_module(f"bench.comparison.runners.{name}")
    run: Callable[[], object] = lambda: None  # noqa: E731 - until a job is prepared
    print(
        json.dumps({"library": runner.LIBRARY, "version": version(runner.LIBRARY)}), file=answers, flush=True
    )
    for line in sys.stdin:
        order = json.loads(line)
        try:
            if order:
                run = runner.JOBS[order["job"]](order["count"], **order["parameters"])
                answer: Mapping[str, object] = {}
            else:
                answer = timed(run)
        except Exception as error:  # noqa: BLE001 - whatever a library raises is its result
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def timed(run: Callable[[], object]) -> dict[str, object]:
    """Do it once; processor time, all threads, and time that passed, in seconds."""
    began, cpu_before = time.perf_counter(), time.process_time()
    result = run()
    cpu_after, ended = time.process_time(), time.perf_counter()
    return {"cpu_seconds": cpu_after - cpu_before, "seconds": ended - began, "result": result}


if __name__ == "__main__":
    main(*sys.argv[1:])
