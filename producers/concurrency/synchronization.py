"""What threads wait for one another with.

A signal handler runs on top of whatever the main thread was doing, which goes on only when it returns. If
that held a lock, a handler that waits for another thread, which waits for that lock, would wait for ever.
Hence the rule: callers hold no lock. What they share with others is changed by single steps of the
interpreter: handlers and other threads come between two of them, and never within one.
"""

import threading
import time
from contextlib import suppress

import numpy as np


class AtomicSum:
    """A sum, at first 0. Nothing that is added is lost, and nobody waits."""

    def __init__(self) -> None:
        self._sum = np.zeros(1, np.int64)

    def add(self, number: int) -> None:
        """Add an integer; the sum must stay within int64."""
        # `+=` of an attribute is several steps of the interpreter. This is one: NumPy keeps the interpreter's
        # lock for so short an array.
        np.add(self._sum, number, out=self._sum)

    @property
    def value(self) -> int:
        """The sum."""
        return int(self._sum[0])


class WakeUp:
    """Wakes one thread. Ringing waits for nobody; if nobody listens, the next who does hears it."""

    def __init__(self) -> None:
        self._silence = threading.Lock()
        self._silence.acquire()

    def ring(self) -> None:
        """Wake who waits, or the next who will; several rings may be heard as one."""
        with suppress(RuntimeError):  # it rings already
            self._silence.release()

    def wait(self, seconds: float) -> bool:
        """Wait for a ring; False when there was none within so many seconds."""
        return self._silence.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))


class Latch:
    """Opens once, for all who wait. Opening waits for nobody.

    Attributes
    ----------
    is_open : whether it was opened.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._bell = WakeUp()

    def open(self) -> None:
        """Let all go on, now and ever after."""
        self.is_open = True
        self._bell.ring()

    def wait(self, seconds: float) -> bool:
        """Wait until it is open; False when it was not within so many seconds."""
        if not self.is_open and self._bell.wait(seconds):
            self._bell.ring()  # who else waits is next
        return self.is_open


class TimeBudget:
    """Seconds that may be waited in all; those within `with` are used up."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.left = max(0.0, self.left - (time.monotonic() - self._began))
