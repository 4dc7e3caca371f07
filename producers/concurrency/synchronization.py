"""Synchronization primitives for threads and signal handlers.

A signal handler interrupts whatever the main thread was doing, which continues only when it returns. If that
held a lock, a handler that waits for a thread that waits for that lock would wait forever. Hence the rule:
callers hold no lock. They change shared state by single steps of the interpreter: handlers and other threads
run between two steps, never within one.
"""

import threading
import time
from contextlib import suppress

import numpy as np


class AtomicSum:
    """A sum that starts at 0. No addition is lost, and nobody waits."""

    def __init__(self) -> None:
        self._sum = np.zeros(1, np.int64)

    def add(self, number: int) -> None:
        """Add an integer; the sum must stay within int64."""
        # `+=` on an attribute is several steps of the interpreter. This is one: NumPy holds the interpreter's
        # lock for so short an array.
        np.add(self._sum, number, out=self._sum)

    @property
    def value(self) -> int:
        """The sum."""
        return int(self._sum[0])


class WakeUp:
    """Wakes one thread. `notify` never blocks; if no thread waits, the next `wait` returns at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def notify(self) -> None:
        """Wake the waiting thread, or the next one; several calls may count as one."""
        if self._lock.locked():
            with suppress(RuntimeError):  # somebody else has notified meanwhile
                self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait for `notify`; return False after `seconds` without a call."""
        return self._lock.acquire(timeout=min(max(0.0, seconds), threading.TIMEOUT_MAX))


class Latch:
    """Opens once, for all waiting threads. Opening never blocks.

    Attributes
    ----------
    is_open : whether it was opened.
    """

    def __init__(self) -> None:
        self.is_open = False
        self._wake_up = WakeUp()

    def open(self) -> None:
        """Let all threads continue, now and later."""
        self.is_open = True
        self._wake_up.notify()

    def wait(self, seconds: float) -> bool:
        """Wait until it is open; False after `seconds`."""
        if not self.is_open and self._wake_up.wait(seconds):
            self._wake_up.notify()  # pass it on to the next waiting thread
        return self.is_open


class TimeBudget:
    """A total of seconds to wait; those within `with` are used up."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def __enter__(self) -> None:
        self._began = time.monotonic()

    def __exit__(self, *_: object) -> None:
        self.left = max(0.0, self.left - (time.monotonic() - self._began))
