"""Server-sent events: sends a feed's frames to every open page, as fast as each reads.

Rule 1: a page costs the worker at most a chunk and one socket buffer. The number of streams is limited, and a
reader that takes nothing for `timing.write` seconds is dropped.
Rule 2: a page treats silence as failure, so the feed must send something every few seconds.
Rule 3: however many pages connect at once, each step of the event loop sends one chunk to one of them.
Rule 4: a page names the collections that it shows, and gets the estimates of no others. Names that the worker
does not know are ignored: a browser could not read why its stream was refused.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator

from aiohttp import web

from deniable.aggregator.web.estimates_api import refused, unfit
from deniable.aggregator.web.event_feed import EventFeed, Frame, FrameKey, frame
from deniable.aggregator.web.timing import DEFAULT, WebTiming

MOST_STREAMS = 64
CHUNK_BYTES = 1 << 16
RETRY_MILLISECONDS = 2000  # before a browser that lost the stream reconnects
PARAMETER = "collections"
OF_ESTIMATES = ("estimate", "window")  # events of a collection that only the pages that show it need


class EventStreams:
    """All open streams of one feed.

    Parameters
    ----------
    feed : to send.
    timing : of writes to a reader.
    """

    def __init__(self, feed: EventFeed, timing: WebTiming = DEFAULT) -> None:
        self.feed = feed
        self.timing = timing
        self.open = 0
        self._one_chunk = asyncio.Lock()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send the feed's frames, then new ones, until the reader or the feed ends.

        With `?collections=`, names joined by commas: estimates and windows of these alone.
        """
        if wrong := unfit(request, PARAMETER):
            return refused(400, wrong)
        wanted = chosen(request.query.get(PARAMETER))
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.open >= MOST_STREAMS:
            await response.write(frame("full", {"streams": MOST_STREAMS}))
            return response
        self.open += 1
        try:
            await self._send(response, wanted)
        except (ConnectionError, TimeoutError):
            response.force_close()
            if request.transport is not None:
                request.transport.abort()
        finally:
            self.open -= 1
        return response

    async def _send(
        self, response: web.StreamResponse, wanted: Callable[[FrameKey], bool] = lambda _: True
    ) -> None:
        await response.write(b"retry: %d\n\n" % RETRY_MILLISECONDS)
        number = 0
        while not self.feed.closed:
            newest = self.feed.number
            for data in chunks(self.feed.since(number, wanted)):
                async with self._one_chunk:
                    await asyncio.sleep(0)  # a write that the socket accepts at once never yields
                async with asyncio.timeout(self.timing.write):
                    await response.write(data)
            number = newest
            await self.feed.changed(number)


def chosen(names: str | None) -> Callable[[FrameKey], bool]:
    """Return whether a frame is to be sent to a page.

    Parameters
    ----------
    names : of the collections that it shows, joined by commas; empty: none; None: all.
    """
    if names is None:
        return lambda _: True
    shown = frozenset(names.split(","))
    return lambda key: key[0] not in OF_ESTIMATES or key[1] in shown


def chunks(frames: Iterable[Frame]) -> Iterator[bytes]:
    """Frames joined to at least CHUNK_BYTES, but for the last."""
    parts: list[bytes] = []
    size = 0
    for _, data in frames:
        parts.append(data)
        size += len(data)
        if size >= CHUNK_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)
