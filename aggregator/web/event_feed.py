"""Feed of events to open pages: the newest frame of each key, and a wait for the next.

Rule: nothing is stored per reader. Each asks for frames newer than its last one, so a slow reader skips
replaced frames and costs no more memory than a fast one.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

FrameKey = tuple[str | int, ...]


class Frame(NamedTuple):
    """One server-sent event, encoded once for all readers.

    Parameters
    ----------
    number : higher than that of every earlier frame.
    data : bytes to send.
    """

    number: int
    data: bytes


class EventFeed:
    """The newest frames, in order of creation."""

    def __init__(self) -> None:
        self.number = 0
        self.closed = False
        self._frames: dict[FrameKey, Frame] = {}
        self._changed = asyncio.Event()

    def put(self, key: FrameKey, content: object) -> None:
        """Replace the frame of a key; its first part names the event."""
        self.number += 1
        self._frames.pop(key, None)  # so that it is inserted last
        self._frames[key] = Frame(self.number, frame(str(key[0]), content))
        self._wake()

    def forget(self, key: FrameKey) -> None:
        """Remove a key's frame: new readers do not get it."""
        del self._frames[key]

    def close(self) -> None:
        """End all readers."""
        self.closed = True
        self._wake()

    def since(self, number: int, wanted: Callable[[FrameKey], bool] = lambda _: True) -> Iterator[Frame]:
        """Yield frames with a higher number whose key is wanted, in order.

        Frames replaced during the iteration are skipped: they come under their new number.
        """
        newer = [(key, each.number) for key, each in self._newer(number) if wanted(key)]
        for key, listed in reversed(newer):
            each = self._frames.get(key)
            if each is not None and each.number == listed:
                yield each

    async def changed(self, number: int) -> None:
        """Wait for a frame with a higher number, or until the feed is closed."""
        while self.number <= number and not self.closed:
            await self._changed.wait()

    def _newer(self, number: int) -> Iterator[tuple[FrameKey, Frame]]:
        for key, each in reversed(self._frames.items()):
            if each.number <= number:
                return
            yield key, each

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()  # waiting readers hold the former one


def frame(event: str, content: object) -> bytes:
    """Encode one event; JSON has no line ends, so one `data` line holds it."""
    return b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(content) + b"\n\n"
