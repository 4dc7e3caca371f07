"""Every request that was answered is one report, however its worker ends; `kill -9` loses the last moments.

Clients send requests all the time, also while the server ends. A request that was sent but not
answered may have been recorded or not.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.producers.web.recipes import command
from tests.support.producers.web.server import Server, serve
from tests.support.producers.web.visitors import Visitors

pytestmark = pytest.mark.broker

FEW, MANY = 500, 4000
#: Answers until a new worker has begun. Before, gunicorn misses a SIGTERM, and kills the worker after 30 s.
STARTED = 300
#: Events of so many seconds may be lost by `kill -9`: 0.02, a transaction, and what a busy machine adds.
LAST_SECONDS = 0.5
#: A client's thread may see an answer so much later than it was sent.
SEEN_SECONDS = 0.05
#: Characters before and after the first traceback of a server that answered 500.
SHOWN = 2000

UVICORN = ("uvicorn",)
SYNC = ("gunicorn",)
PRELOAD = ("gunicorn", "--preload")
THREADS = ("gunicorn", "--threads", "4")
PRELOAD_THREADS = ("gunicorn", "--preload", "--threads", "4")
ASGI = ("gunicorn", "--worker-class", "asgi")
MODELS = (UVICORN, SYNC, PRELOAD, THREADS, PRELOAD_THREADS, ASGI)
RECYCLING = {
    "uvicorn": ("--limit-max-requests", "200"),
    "gunicorn": ("--max-requests", "200", "--max-requests-jitter", "50"),
}
#: A busy machine starts a worker in more than the 5 s after which uvicorn would keep the former one.
PATIENT = {"uvicorn": ("--timeout-worker-healthcheck", "60")}
HUP, INT, KILL, TERM = signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM

Arrived = Callable[[], int]


def ids(value: object) -> str:
    return "-".join(each.strip("-") for each in value) if isinstance(value, tuple) else str(value)


def check(visitors: Visitors, reports: int, lost: int = 0, number: signal.Signals = TERM) -> None:
    """At most `lost` answered requests are no report, and no request is two.

    After SIGINT, gunicorn answers 500 where a request was interrupted, and with threads to those that come
    until its worker is gone.
    """
    answered, errors = len(visitors.answered), visitors.others
    print(f"answered {answered}, reports {reports}, unanswered {visitors.broken}, 500: {len(errors)}")  # noqa: T201
    assert set(errors) <= ({500} if number == INT else set())
    assert answered - lost <= reports <= answered + visitors.broken + len(errors)


def run(
    model: tuple[str, ...], folder: Path, requests: int, end: Callable[[Server, Visitors], object]
) -> Visitors:
    """Serve the page's application, wait for so many answers, and end the server."""
    program, *options = model
    line = command(program)
    if model[: len(ASGI)] == ASGI:
        line = line.replace("flask_app", "fastapi_app")
    with serve(line, folder, options) as server, Visitors(server.port) as visitors:
        visitors.wait(requests)
        end(server, visitors)
    if visitors.others:
        before, found, after = server.log.partition("Traceback")
        print(before[-SHOWN:], found, after[:SHOWN])  # noqa: T201
    return visitors


@pytest.mark.all
@pytest.mark.parametrize(
    ("model", "number", "requests"),
    [
        (UVICORN, TERM, FEW),
        (PRELOAD, INT, FEW),
        *(
            pytest.param(model, number, MANY, marks=pytest.mark.nightly)
            for model in MODELS
            for number in (TERM, INT)
        ),
    ],
    ids=ids,
)
def test_every_answered_request_is_one_report_after_a_signal(
    model: tuple[str, ...], number: signal.Signals, requests: int, folder: Path, arrived: Arrived
) -> None:
    visitors = run(model, folder, requests, lambda server, _: server.stop(number))
    check(visitors, arrived(), number=number)


@pytest.mark.all
@pytest.mark.parametrize(
    ("model", "requests"),
    [
        (SYNC, 2 * FEW),
        *(pytest.param(model, MANY, marks=pytest.mark.nightly) for model in MODELS),
    ],
    ids=ids,
)
def test_recycled_workers_lose_nothing(
    model: tuple[str, ...], requests: int, folder: Path, arrived: Arrived
) -> None:
    def end(server: Server, visitors: Visitors) -> None:
        visitors.stop()  # so that no worker is starting: see below
        server.stop(TERM)

    visitors = run((*model, *RECYCLING[model[0]]), folder, requests, end)
    log = (folder / "server.log").read_text()
    # Two at the start, of which each is replaced; how often depends on how fast the machine serves.
    assert log.count("Booting worker") + log.count("Started server process") >= 4
    check(visitors, arrived())


@pytest.mark.all
@pytest.mark.parametrize(
    "model",
    [pytest.param(model, marks=pytest.mark.nightly) for model in (UVICORN, SYNC, PRELOAD)],
    ids=ids,
)
def test_reload_loses_nothing(model: tuple[str, ...], folder: Path, arrived: Arrived) -> None:
    def end(server: Server, visitors: Visitors) -> None:
        before = server.workers()
        server.process.send_signal(HUP)
        server.wait_for_others(before)
        visitors.wait(STARTED)
        server.stop(TERM)

    visitors = run((*model, *PATIENT.get(model[0], ())), folder, FEW, end)
    check(visitors, arrived())


@pytest.mark.all
@pytest.mark.parametrize(
    ("model", "requests"),
    [
        (SYNC, FEW),
        *(pytest.param(model, MANY, marks=pytest.mark.nightly) for model in MODELS),
    ],
    ids=ids,
)
def test_killed_worker_loses_its_last_moments(
    model: tuple[str, ...], requests: int, folder: Path, arrived: Arrived
) -> None:
    moments = []

    def end(server: Server, visitors: Visitors) -> None:
        killed = server.workers()[0]
        moments.append(time.monotonic())
        os.kill(killed, KILL)
        server.wait_for_others([killed])
        visitors.wait(STARTED)
        server.stop(TERM)

    visitors = run(model, folder, requests, end)
    lost = visitors.answered_between(moments[0] - LAST_SECONDS, moments[0] + SEEN_SECONDS)
    check(visitors, arrived(), lost)
