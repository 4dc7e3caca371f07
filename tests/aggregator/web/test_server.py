"""The web server over real HTTP on loopback: routes, headers, health, and a port in use."""

import asyncio
import re
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest
from aiohttp import ClientSession

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.views.latest_estimates import successor_due
from deniable.aggregator.web import server as web
from deniable.aggregator.web.server import HEADERS, PAGE, PAGE_FILES, PortInUseError, WebServer
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, estimate_of
from tests.support.brokers.log_lines import logged
from tests.support.messages import PinMessages

Answer = tuple[int, dict[str, str], bytes]
Get = Callable[..., Awaitable[Answer]]


class Fixture:
    def __init__(self) -> None:
        self.history = EstimateHistory(COLLECTIONS.values())
        self.metrics = WorkerMetrics(COLLECTIONS)
        self.reasons: list[str] = []
        self.server = WebServer(COLLECTIONS, self.history, self.metrics, lambda: self.reasons)

    def take(self, record: EstimateRecord) -> None:
        assert self.history.take(encode_estimate(record)) == record

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[Get]:
        port = await self.server.start(0)
        async with ClientSession(f"http://127.0.0.1:{port}") as session:

            async def get(path: str, method: str = "GET") -> Answer:
                async with session.request(method, path) as answer:
                    return answer.status, dict(answer.headers), await answer.read()

            try:
                yield get
            finally:
                await self.server.stop()


def get(path: str, served: Fixture | None = None, method: str = "GET") -> Answer:
    async def once() -> Answer:
        async with (served or Fixture()).serving() as ask:
            return await ask(path, method)

    return asyncio.run(once())


def check_headers(headers: dict[str, str]) -> None:
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]
    assert "unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize(
    ("path", "kind"), [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "javascript")]
)
def test_page_is_served(path: str, kind: str) -> None:
    status, headers, body = get(path)
    assert status == 200
    assert headers["Content-Type"].split(";")[0].endswith(kind)  # JavaScript has two media types
    assert body == (PAGE / PAGE_FILES[path]).read_bytes()
    check_headers(headers)


def test_only_files_of_the_page_are_served() -> None:
    files = {path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file()}
    assert files == set(PAGE_FILES.values())
    for path in ("/web.py", "/page/index.html", "/../web.py", "/%2e%2e/web.py", "/index.html"):
        status, headers, _ = get(path)
        assert status == 404
        check_headers(headers)


def test_page_loads_all_scripts_at_once() -> None:
    """Not each after the one that imports it; the same is true of the styles."""
    text = (PAGE / "index.html").read_text()
    scripts = [*re.findall(r'<link rel="modulepreload" href="(.*)">', text), "page.js"]
    styles = re.findall(r'<link rel="stylesheet" href="(.*)">', text)
    assert sorted([*scripts, *styles, "index.html"]) == sorted(PAGE_FILES.values())


def test_page_obeys_its_content_policy() -> None:
    text = (PAGE / "index.html").read_text()
    for forbidden in ("style=", "onclick", "<style", "http://", "https://"):
        assert forbidden not in text.replace("xmlns='http://www.w3.org/2000/svg'", "")
    assert "<script>" not in text


def test_collections_are_listed() -> None:
    status, headers, body = get("/api/collections")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    check_headers(headers)
    listed = {entry["name"]: entry for entry in msgspec.json.decode(body)}
    assert listed.keys() == {"fruit", "place"}
    assert listed["fruit"]["mechanism"] == "k-rr"
    assert listed["fruit"]["epsilon_permanent"] is None
    assert listed["place"]["epsilon_permanent"] > listed["place"]["epsilon"]
    assert listed["place"]["values"] == 3


def test_metrics_are_in_the_text_format() -> None:
    served = Fixture()
    served.metrics.resyncs.inc()
    status, headers, body = get("/metrics", served)
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=")
    assert b"\ndeniable_resyncs_total 1.0\n" in body


def test_health_and_readiness() -> None:
    served = Fixture()

    async def ask() -> list[tuple[int, bytes]]:
        async with served.serving() as get:
            answers = [await get("/healthz"), await get("/readyz")]
            served.reasons = ["waiting for partitions"]
            answers += [await get("/healthz"), await get("/readyz")]
        return [(status, body) for status, _, body in answers]

    healthy = (200, b'{"healthy":true}')
    assert asyncio.run(ask()) == [
        healthy,
        (200, b'{"ready":true,"reasons":[]}'),
        healthy,
        (503, b'{"ready":false,"reasons":["waiting for partitions"]}'),
    ]


def test_wrong_method_is_refused_with_common_headers() -> None:
    status, headers, _ = get("/metrics", method="POST")
    assert status == 405
    check_headers(headers)


def test_status_holds_page_header(monkeypatch: pytest.MonkeyPatch) -> None:
    served = Fixture()
    served.reasons = ["partition 1: opening the ledger"]
    served.take(estimate_of())
    served.history.sought.remove("fruit")
    served.metrics.unattributed.add(Counter(malformed=3, unknown_collection=7))
    due = successor_due(estimate_of(), FRUIT)
    shown = []
    for now in (due, due + 1):
        monkeypatch.setattr(web.time, "time", lambda now=now: now)
        status, headers, body = get("/api/status", served)
        assert status == 200
        check_headers(headers)
        shown.append(msgspec.json.decode(body))
    fresh = {
        "ready": False,
        "reasons": ["partition 1: opening the ledger"],
        "stale": {},
        "waiting": ["place"],
        "sought": ["place"],
        "unattributed": {"malformed": 3, "unknown_collection": 7},
    }
    assert shown == [fresh, {**fresh, "stale": {"fruit": due}}]


def test_server_listens_only_on_loopback() -> None:
    async def ask() -> list[object]:
        server = Fixture().server
        await server.start(0)
        addresses = [address[0] for runner in server._runners for address in runner.addresses]
        await server.stop()
        return addresses

    assert asyncio.run(ask()) == ["127.0.0.1"]


def test_malformed_http_is_refused_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The library would log the received bytes."""

    async def answered() -> bytes:
        served = Fixture()
        async with served.serving():
            port = served.server._runners[0].addresses[0][1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nsecret of a sender\r\n\r\n")
            line = await reader.readline()
            writer.close()
            await writer.wait_closed()
            return line

    assert asyncio.run(answered()) == b"HTTP/1.0 400 Bad Request\r\n"
    assert not logged(caplog)


OTHERS = ("/", "/page.js", "/api/collections", "/api/estimates/fruit", "/api/events", "/api/status")


def test_probe_address_serves_only_probes() -> None:
    """Under any host name, since scrapes use the pod's address; readiness is the worker's."""

    async def ask() -> dict[str, tuple[int, str]]:
        fixture = Fixture()
        fixture.reasons.append("partition 0 has no open ledger")
        port = await fixture.server.open_probes("0.0.0.0", 0)  # noqa: S104 - as requested
        answers = {}
        try:
            async with ClientSession(headers={"Host": "worker-0.example"}) as session:
                for path in ("/metrics", "/healthz", "/readyz", *OTHERS):
                    async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                        answers[path] = answer.status, await answer.text()
        finally:
            await fixture.server.stop()
        return answers

    answers = asyncio.run(ask())
    assert {path: answers[path][0] for path in OTHERS} == dict.fromkeys(OTHERS, 404)
    assert answers["/metrics"][0] == 200
    assert "deniable_" in answers["/metrics"][1]
    assert answers["/healthz"] == (200, '{"healthy":true}')
    assert answers["/readyz"][0] == 503
    assert "partition 0 has no open ledger" in answers["/readyz"][1]


def test_messages(pin_messages: PinMessages) -> None:
    def of_the_same_port(start: Callable[[WebServer, int], Awaitable[object]]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            try:
                asyncio.run(start(Fixture().server, port))
            except PortInUseError as error:
                raise PortInUseError(str(error).replace(str(port), "PORT")) from error

    pin_messages(
        {
            "a port in use": lambda: of_the_same_port(lambda server, port: server.start(port)),
            "a port of probes in use": lambda: of_the_same_port(
                lambda server, port: server.open_probes("127.0.0.1", port)
            ),
            "an address of another machine": lambda: asyncio.run(
                Fixture().server.open_probes("192.0.2.1", 9100)
            ),
        }
    )
