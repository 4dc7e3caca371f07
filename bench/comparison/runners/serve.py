"""A child process that runs jobs on request: python -m bench.comparison.runners.serve RUNNER

A runner is a module within this folder, such as `peers.numpy_runner`, with LIBRARY, the name of a
distribution, and JOBS by name. Each is called with a count and parameters, and returns a function that
runs the job that many times; its result must be JSON, or None.

Requests and answers are JSON objects, one a line: {"job", "count", "parameters"} prepares, {} runs the
job and answers {"cpu_seconds", "seconds", "result"}. An error of the library is answered as {"error"}.
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
    """Interface of the modules in this folder."""

    LIBRARY: str
    JOBS: Mapping[str, Callable[..., Callable[[], object]]]


def main(name: str) -> None:
    """Answer requests until the other side closes, on one core."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    warnings.simplefilter("ignore")
    # Output of a library must not mix with the answers.
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
        except Exception as error:  # noqa: BLE001 - any error of a library is its result
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


def timed(run: Callable[[], object]) -> dict[str, object]:
    """Run it once; return processor time of all threads and wall time, seconds."""
    began, cpu_before = time.perf_counter(), time.process_time()
    result = run()
    cpu_after, ended = time.process_time(), time.perf_counter()
    return {"cpu_seconds": cpu_after - cpu_before, "seconds": ended - began, "result": result}


if __name__ == "__main__":
    main(*sys.argv[1:])
