"""Server-sent events: a feed's frames to every open page, as fast as each reads.

Rule 1: no page can cost the worker more than one socket buffer: there are so many streams and no more, and a
reader that takes nothing for a while is dropped.
Rule 2: a page that hears nothing knows that something is wrong, so whoever feeds the streams does so at
least every few seconds.
"""

import asyncio

from aiohttp import web

from aggregator.frames import Feed, frame

MOST_STREAMS = 64
WRITE_SECONDS = 10.0  # for a reader to take what is written to it
RETRY_MILLISECONDS = 2000  # after which a browser that lost the stream asks again


class EventStreams:
    """All open streams of one feed."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.open = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Send what the feed holds, then what is new, until the reader or the feed ends."""
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
            for each in self.feed.since(number):
                async with asyncio.timeout(WRITE_SECONDS):
                    await response.write(each.data)
                number = each.number
            await self.feed.changed(number)
