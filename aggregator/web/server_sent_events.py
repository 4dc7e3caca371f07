"""Server-sent events: sends a feed's frames to every open page, as fast as each reads.

Rule 1: a page costs the worker at most a chunk and one socket buffer. The number of streams is limited, and a
reader that takes nothing for `timing.write` seconds is dropped.
Rule 2: a page treats silence as failure, so the feed must send something every few seconds.
Rule 3: however many pages connect at once, each step of the event loop sends one chunk to one of them.
"""

import asyncio
from collections.abc import Iterable, Iterator

from aiohttp import web

from aggregator.web.event_feed import EventFeed, Frame, frame
from aggregator.web.timing import DEFAULT, WebTiming

MOST_STREAMS = 64
CHUNK_BYTES = 1 << 16
RETRY_MILLISECONDS = 2000  # before a browser that lost the stream reconnects


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
        """Send the feed's frames, then new ones, until the reader or the feed ends."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.open >= MOST_STREAMS:
            await response.write(frame("full", {"streams": MOST_STREAMS}))
            return response
        self.open += 1
        try:
            await self._send(response)
        except (ConnectionError, TimeoutError):
            response.force_close()
            if request.transport is not None:
                request.transport.abort()
        finally:
            self.open -= 1
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        await response.write(b"retry: %d\n\n" % RETRY_MILLISECONDS)
        number = 0
        while not self.feed.closed:
            newest = self.feed.number
            for data in chunks(self.feed.since(number)):
                async with self._one_chunk:
                    await asyncio.sleep(0)  # a write that the socket accepts at once never yields
                async with asyncio.timeout(self.timing.write):
                    await response.write(data)
            number = newest
            await self.feed.changed(number)


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
