"""Only local programs that use a local name get answers, and no page of another site does."""

import asyncio

import pytest
from aiohttp import ClientSession

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web.server import HEADERS, PAGE_FILES, WebServer
from tests.support.aggregator.builders import COLLECTIONS
from tests.support.messages import PinMessages

PATHS = ("/", "/api/collections", "/api/events", "/api/status", "/metrics", "/healthz", "/nothing")


def ask(headers: dict[str, str], *paths: str, names: tuple[str, ...] = ()) -> dict[str, tuple[int, str]]:
    """Status and text by path; every answer has the common headers."""

    async def run() -> dict[str, tuple[int, str]]:
        server = WebServer(
            COLLECTIONS,
            EstimateHistory(COLLECTIONS.values()),
            WorkerMetrics(COLLECTIONS),
            list,
            page_hosts=names,
        )
        port = await server.start(0)
        given = {name: value.replace("PORT", str(port)) for name, value in headers.items()}
        answers = {}
        try:
            async with ClientSession(f"http://127.0.0.1:{port}") as session:
                for path in paths:
                    async with session.get(path, headers=given) as answer:
                        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
                        answers[path] = answer.status, "" if answer.status == 200 else await answer.text()
        finally:
            await server.stop()
        return answers

    return asyncio.run(run())


@pytest.mark.parametrize(
    "host", ["127.0.0.1:PORT", "localhost:PORT", "LOCALHOST", "[::1]:9000", "localhost:1"]
)
def test_local_names_are_accepted(host: str) -> None:
    """With any port, since a tunnel may start at another one."""
    assert ask({"Host": host}, "/", "/api/status") == {"/": (200, ""), "/api/status": (200, "")}


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:PORT", "127.0.0.1.evil.example", "localhost.", "localhost:PORT@evil", ""],
)
def test_other_names_are_refused(host: str) -> None:
    """As from a page whose own domain name resolves to this machine."""
    assert {status for status, _ in ask({"Host": host}, *PATHS).values()} == {421}


def test_listed_names_are_accepted_and_no_others() -> None:
    names = ("stats.example", "10.0.0.7")
    for host in ("stats.example", "STATS.example:443", "10.0.0.7", "localhost"):
        assert ask({"Host": host}, "/", names=names) == {"/": (200, "")}
    for host in ("statsXexample", "evil.stats.example", "stats.example.evil", "10.0.0.70"):
        assert ask({"Host": host}, "/", names=names)["/"][0] == 421


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_are_refused(site: str) -> None:
    headers = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
    assert {status for status, _ in ask(headers, *PATHS).values()} == {403}
    framed = {**headers, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    assert ask(framed, "/")["/"][0] == 403


def test_links_from_other_sites_are_allowed() -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert ask(link, "/") == {"/": (200, "")}


def test_own_page_is_accepted() -> None:
    own = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
    assert ask(own, *PAGE_FILES) == dict.fromkeys(PAGE_FILES, (200, ""))


def test_messages(pin_messages: PinMessages) -> None:
    def refused(headers: dict[str, str]) -> str:
        status, text = ask(headers, "/")["/"]
        return f"HTTP {status}: {text}"

    pin_messages(
        {
            "another name of the server": lambda: refused({"Host": "evil.example"}),
            "a page of another site": lambda: refused({"Sec-Fetch-Site": "cross-site"}),
        }
    )
