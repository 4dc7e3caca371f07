"""What open pages are told: the newest frame of each key, and a wait for the next.

Rule: nothing is kept for a reader. Each asks for what is newer than the last frame that it has, so one that
is slow misses what was replaced meanwhile, and costs no more memory than one that is fast.
"""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

Key = tuple[str | int, ...]


class Frame(NamedTuple):
    """One server-sent event, encoded once for all readers.

    Parameters
    ----------
    number : higher than that of every frame made before it.
    data : bytes as they are sent.
    """

    number: int
    data: bytes


class EventFeed:
    """The newest frames, in the order in which they were made."""

    def __init__(self) -> None:
        self.number = 0
        self.closed = False
        self._frames: dict[Key, Frame] = {}
        self._news = asyncio.Event()

    def put(self, key: Key, content: object) -> None:
        """Tell of a matter, in place of what was told of it; its first part names the event."""
        self.number += 1
        self._frames.pop(key, None)  # so that it is put last
        self._frames[key] = Frame(self.number, frame(str(key[0]), content))
        self._wake()

    def forget(self, key: Key) -> None:
        """Tell newcomers no more of a matter."""
        del self._frames[key]

    def close(self) -> None:
        """Let every reader end."""
        self.closed = True
        self._wake()

    def since(self, number: int) -> Iterator[Frame]:
        """Frames with a higher number, in their order, each as it is asked for.

        Those that were replaced meanwhile are left out: they come under their new number.
        """
        newer = [(key, each.number) for key, each in self._newer(number)]
        for key, told in reversed(newer):
            each = self._frames.get(key)
            if each is not None and each.number == told:
                yield each

    async def changed(self, number: int) -> None:
        """Wait until there is a frame with a higher number, or the feed is closed."""
        while self.number <= number and not self.closed:
            await self._news.wait()

    def _newer(self, number: int) -> Iterator[tuple[Key, Frame]]:
        for key, each in reversed(self._frames.items()):
            if each.number <= number:
                return
            yield key, each

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()  # whoever waits has the former one


def frame(event: str, content: object) -> bytes:
    """Encode one event; JSON has no line ends, so one `data` line holds it."""
    return b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"
