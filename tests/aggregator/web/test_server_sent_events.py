"""The stream of events over real HTTP: which events, in which order, and the cost of a page."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from http.client import HTTPConnection
from typing import Any, cast

import msgspec
import pytest
from aiohttp import ClientResponse, ClientSession, web

from deniable.aggregator.deployment import ClientLimits
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.views.estimate_history import EstimateHistory
from deniable.aggregator.web import server_sent_events
from deniable.aggregator.web.event_feed import EventFeed
from deniable.aggregator.web.server import WebServer
from deniable.aggregator.web.server_sent_events import CHUNK_BYTES, MOST_STREAMS, EventStreams
from deniable.aggregator.web.timing import DEFAULT, WebTiming
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, PLACE, T0, changed, estimate_of
from tests.support.aggregator.page.crowd import crowd, crowd_estimates
from tests.support.aggregator.served import Served

Event = tuple[str, Any]
SECONDS = 20


class Worker:
    def __init__(self, limits: dict[str, ClientLimits] | None = None, timing: WebTiming = DEFAULT) -> None:
        self.reasons: list[str] = []
        self.history = EstimateHistory(COLLECTIONS.values())
        self.server = WebServer(
            COLLECTIONS,
            self.history,
            WorkerMetrics(COLLECTIONS),
            lambda: list(self.reasons),
            limits or {},
            timing=timing,
        )
        self.port = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/events"

    def take(self, record: EstimateRecord) -> None:
        taken = self.history.take(encode_estimate(record))
        assert taken is not None
        self.server.page.show(taken)

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[Callable[[], Awaitable[Event]]]:
        """One reader; each call returns its next event."""
        async with ClientSession() as session, session.get(self.address) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
            yield lambda: next_event(answer)


async def next_event(answer: ClientResponse) -> Event:
    lines = (await answer.content.readuntil(b"\n\n")).decode().splitlines()
    fields = dict(line.split(": ", 1) for line in lines if line)
    if "retry" in fields:
        return await next_event(answer)
    return fields["event"], msgspec.json.decode(fields["data"])


async def streams_open(worker: Worker, number: int) -> None:
    """Wait until this many streams are open."""
    while worker.server.streams.open != number:  # noqa: ASYNC110  # a reader's end has no event
        await asyncio.sleep(0.01)


def run(test: Callable[[Worker], Awaitable[None]], worker: Worker | None = None) -> None:
    """Run a test with a worker's server, which must then stop promptly."""

    async def serve() -> None:
        served = worker or Worker()
        served.port = await served.server.start(0)
        async with asyncio.timeout(SECONDS):
            await test(served)
        async with asyncio.timeout(SECONDS):
            await served.server.stop()

    asyncio.run(serve())


def test_new_page_gets_everything_collections_first() -> None:
    async def test(worker: Worker) -> None:
        worker.take(changed(estimate_of(), window_start=T0 - 10, final=True))
        worker.take(estimate_of())
        async with worker.stream() as read:
            events = [await read() for _ in range(5)]
            assert events[0][0] == "collections"
            assert sorted(name for name, _ in events[1:]) == ["estimate", "status", "window", "window"]
            shown = dict(events)
            assert [each["name"] for each in shown["collections"]] == ["fruit", "place"]
            assert msgspec.convert(shown["estimate"], EstimateRecord) == estimate_of()

    run(test)


def test_open_page_gets_new_events() -> None:
    async def test(worker: Worker) -> None:
        async with worker.stream() as read:
            assert [(await read())[0] for _ in range(2)] == ["collections", "status"]
            worker.take(changed(estimate_of(), revision=7))
            (first, estimate), (second, window) = await read(), await read()
            assert (first, second) == ("estimate", "window")
            assert estimate["revision"] == 7
            assert sorted(window["values"]) == ["apple", "fig", "kiwi"]
            worker.take(changed(estimate_of(), window_start=T0 - 10))
            assert (await read())[0] == "window"  # of an older window, so the newest estimate stays the same

    run(test)


def test_status_is_sent_soon_after_a_change() -> None:
    async def test(worker: Worker) -> None:
        async with worker.stream() as read:
            assert (await read())[0] == "collections"
            for reasons in ([], [], ["waiting for partitions"]):
                worker.reasons = reasons
                name, status = await read()
                assert name == "status"
                while status["reasons"] != reasons:
                    _, status = await read()

    run(test, Worker(timing=WebTiming(look=0.01, pulse=0.1)))


def test_client_limits_follow_once_computed() -> None:
    limits = {
        "fruit": ClientLimits(1, None, lambda: None),
        "place": ClientLimits(2, (8.0, 1e-6, 86400), lambda: 3, 1, "unchanged", 8.0),
    }

    async def test(worker: Worker) -> None:
        async with worker.stream() as read:
            shown: list[object] = []
            while len(shown) < 2:
                name, content = await read()
                shown += [content] if name == "limits" else []
        budget = {"epsilon": 8.0, "delta": 1e-6, "period_seconds": 86400, "reports": 3, "changes": 1}
        budget["values"] = "unchanged"
        assert shown == [
            {"collection": "fruit", "per_window": 1, "epsilon_any": None, "budget": None},
            {"collection": "place", "per_window": 2, "epsilon_any": 8.0, "budget": budget},
        ]

    run(test, Worker(limits))


def test_excess_stream_is_refused_until_another_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_sent_events, "MOST_STREAMS", 2)

    async def test(worker: Worker) -> None:
        async with worker.stream() as first, worker.stream() as second:
            assert (await first())[0] == (await second())[0] == "collections"
            async with worker.stream() as third:
                assert await third() == ("full", {"streams": 2})
        await streams_open(worker, 0)
        async with worker.stream() as read:
            assert (await read())[0] == "collections"

    run(test)


@pytest.mark.slow
def test_stalled_reader_is_dropped() -> None:
    """The frames exceed all buffers; the worker must not hold any of them for this reader."""

    async def test(worker: Worker) -> None:
        with socket.create_connection(("127.0.0.1", worker.port)) as idle:
            idle.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await streams_open(worker, 1)
            worker.server.page.feed.put(("window", "fruit", 0), "x" * 20_000_000)
            await streams_open(worker, 0)

    run(test, Worker(timing=WebTiming(write=0.2)))


def test_dropped_window_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deniable.aggregator.views.estimate_history.WINDOWS", 2)

    async def test(worker: Worker) -> None:
        for step in range(4):
            worker.take(changed(estimate_of(), window_start=T0 + 10 * step))
        shown = [frame.data for frame in worker.server.page.feed.since(0)]
        windows = [data for data in shown if data.startswith(b"event: window\n")]
        assert [f'"window_start":{T0 + 10 * step}'.encode() in windows[step - 2] for step in (2, 3)] == [
            True
        ] * 2
        assert len(windows) == 2
        assert worker.history.starts(FRUIT) == [T0 + 20, T0 + 30]

    run(test)


def test_open_streams_end_when_the_server_stops() -> None:
    """Immediately, without waiting for readers."""

    async def test(worker: Worker) -> None:
        async with ClientSession() as session, session.get(worker.address) as answer:
            await next_event(answer)
            began = time.monotonic()
            await worker.server.stop()
            assert time.monotonic() - began < DEFAULT.stop
            await answer.content.read()  # to the end of the stream

    run(test)


@pytest.mark.slow
def test_simultaneous_pages_get_chunks_in_turn() -> None:
    """Without a pause between writes, a fast socket would receive the whole history in one step."""
    feed = EventFeed()
    for window in range(400):
        feed.put(("window", "fruit", window), "x" * 4000)
    everything = b"".join(frame.data for frame in feed.since(0))

    class Response:
        def __init__(self) -> None:
            self.written: list[bytes] = []

        async def write(self, data: bytes) -> None:
            self.written.append(data)

    async def run() -> None:
        responses = [Response() for _ in range(MOST_STREAMS)]
        streams = EventStreams(feed)
        tasks = [asyncio.create_task(streams._send(cast(web.StreamResponse, each))) for each in responses]
        writes = 0
        while len(b"".join(responses[-1].written[1:])) < len(everything):
            await asyncio.sleep(0)
            former, writes = writes, sum(len(each.written[1:]) for each in responses)
            assert writes - former <= 1
        feed.close()
        await asyncio.gather(*tasks)
        for each in responses:
            retry, *shown = each.written
            assert retry.startswith(b"retry:")
            assert b"".join(shown) == everything
            assert all(CHUNK_BYTES <= len(data) < CHUNK_BYTES + 4100 for data in shown[:-1])

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.slow
def test_dropped_windows_are_forgotten_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """100 collections with 60 windows have 6,000 frames, and each new window drops one."""
    monkeypatch.setattr("deniable.aggregator.views.estimate_history.WINDOWS", 3)
    worker, gone = Worker(), []
    monkeypatch.setattr(worker.server.page.feed, "forget", gone.append)
    for step in range(6):
        for collection in (FRUIT, PLACE):
            worker.take(changed(estimate_of(collection), window_start=T0 + 10 * step))
    given_up = [("window", name, T0 + 10 * step) for step in range(3) for name in ("fruit", "place")]
    assert gone == given_up


@pytest.mark.slow
def test_stream_of_few_collections_is_small() -> None:
    """What the worker sends is that of the collections asked for, not of all: 1.5 MB here."""
    shown = crowd(10)
    names, sent = set(), 0
    with Served(shown).serving() as served:
        records = [*crowd_estimates([*shown.values()], 5)]
        served.take(*records)
        connection = HTTPConnection("127.0.0.1", served.port, timeout=SECONDS)
        with closing(connection):
            connection.request("GET", "/api/events?collections=shop-007")
            answer = connection.getresponse()
            assert answer.status == 200
            while (
                "shop-007" not in names
            ):  # once it has begun, all that follows was there before the last one
                sent += len(line := answer.readline())
                names |= names_in(line)
            served.take(*(changed(records[place], revision=1001) for place in (-1, -3)))
            while b'"revision":1001' not in line:
                sent += len(line := answer.readline())
                names |= names_in(line)
    assert names == {"shop-007"}
    assert 100_000 < sent < 400_000


def names_in(line: bytes) -> set[str]:
    """The collection of an event, if it is of one."""
    if not line.startswith(b"data: {"):
        return set()
    data = msgspec.json.decode(line.removeprefix(b"data: "))
    return {data["collection"]} if "collection" in data else set()
