"""Lanes: which process owns which rows of the outbox, by locks that end with their process."""

import fcntl
import os
from itertools import count
from pathlib import Path
from weakref import WeakSet

from deniable.producers.storage.store import StoreError


class OutboxLane:
    """A number that no other producer with the same folder uses, until `release` or the end of this process.

    A forked child does not own it.

    Parameters
    ----------
    number : >= 0.
    descriptor : of the locked file.
    """

    def __init__(self, number: int, descriptor: int) -> None:
        self.number = number
        self._descriptor = descriptor
        _held.add(self)

    def release(self) -> None:
        """Free the lane for other producers. Calling it again does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def claim_lane(folder: Path) -> OutboxLane:
    """Claim the lowest free lane.

    Raises
    ------
    StoreError if a lock file cannot be created or locked.
    """
    return next(lane for number in count() if (lane := try_lane(folder, number)))


def try_lane(folder: Path, number: int) -> OutboxLane | None:
    """Claim this lane; None if it is not free.

    Raises
    ------
    StoreError if its lock file cannot be created or locked.
    """
    path = folder / f"lane-{number}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                return None
            raise
    except OSError as error:
        raise StoreError(f"lock {path}: {error.strerror}; give this user access to file and folder") from None
    return OutboxLane(number, descriptor)


_held: WeakSet[OutboxLane] = WeakSet()


def _leave_to_parent() -> None:
    # A fork copies the descriptor, and the lock remains until every copy is closed.
    for lane in list(_held):
        lane.release()


os.register_at_fork(after_in_child=_leave_to_parent)
