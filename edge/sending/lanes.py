"""The uploads of one partition that wait for Kafka, in the order they came. Reads no clock."""

from collections import deque
from typing import Protocol

from deniable.cluster.connection.outage import NOT_ENOUGH
from deniable.protocol.uploads.frame import FRAME_HEADER_BYTES, LENGTH_BYTES, MAX_UPLOADS
from deniable.protocol.wire import MAX_RECORD_BYTES

MOST_FRAME_BYTES = MAX_RECORD_BYTES - FRAME_HEADER_BYTES - LENGTH_BYTES * MAX_UPLOADS


class WaitingUpload(Protocol):
    """An upload between a request and its answer."""

    upload: bytes
    deadline: float  # when its request is answered 503, seconds of the loop's clock

    def done(self, why: str) -> None:
        """Called once: with an empty text when Kafka has it, else with the reason it may not have it."""


class Lane:
    """A queue.

    Parameters
    ----------
    partition : of the topic.

    Attributes
    ----------
    trouble : why its last frame failed; None if it did not.
    lacks_replicas : whether a frame failed for that since the last one that did not.
    since : when the trouble began, seconds of the loop's clock.
    """

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.trouble: BaseException | None = None
        self.lacks_replicas = False
        self.since = 0.0
        self._waiting: deque[WaitingUpload] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, waiting: WaitingUpload) -> None:
        """Append one upload."""
        self._waiting.append(waiting)

    def take(self) -> list[WaitingUpload]:
        """Remove and return the uploads of the next frame: at least one, if any waits."""
        taken: list[WaitingUpload] = []
        waiting, size = self._waiting, 0
        while waiting and len(taken) < MAX_UPLOADS:
            each = waiting.popleft()
            size += len(each.upload)
            if size > MOST_FRAME_BYTES:
                waiting.appendleft(each)
                break
            taken.append(each)
        return taken

    def put_back(self, taken: list[WaitingUpload]) -> None:
        """Return the uploads of a frame that failed to their place."""
        self._waiting.extendleft(reversed(taken))

    def overdue(self, now: float) -> list[WaitingUpload]:
        """Remove and return the uploads whose deadline is over."""
        found = []
        while self._waiting and self._waiting[0].deadline <= now:
            found.append(self._waiting.popleft())
        return found

    def fail(self, trouble: BaseException, now: float) -> None:
        """Note that a frame failed."""
        if self.trouble is None:
            self.since = now
        self.trouble = trouble
        self.lacks_replicas |= isinstance(trouble, NOT_ENOUGH)
