"""A background thread that is started once, and whose end or death is visible."""

import _thread
import threading
from collections.abc import Callable

from deniable.producers.concurrency.synchronization import Latch
from deniable.producers.errors import DeliveryError


class Background:
    """A daemon thread.

    Parameters
    ----------
    name : of the thread, for messages.
    work : the function to run.
    afterwards : runs next, also if `work` raised, with `death` set by then.

    Attributes
    ----------
    death : message with the type of the error that `work` raised; None otherwise.
    """

    def __init__(self, name: str, work: Callable[[], None], afterwards: Callable[[], None]) -> None:
        self.death: str | None = None
        self._name = name
        self._work = work
        self._afterwards = afterwards
        self._is_started = False
        self._running = threading.Lock()  # never waited for: the thread that works keeps it
        self._ended = Latch()

    @property
    def is_begun(self) -> bool:
        """Whether it was started."""
        return self._is_started or self._running.locked()

    def start(self) -> None:
        """Start the thread, unless it was started. Never blocks.

        Several callers at once, or a signal handler within another call, may each start one: the first works,
        and the others end. So no caller relies on another, which may never continue.

        Raises
        ------
        DeliveryError if the system cannot start a thread; the next call tries again.
        """
        if not self.is_begun:
            try:
                # Not by `threading`: it takes a lock, whose holder a signal handler may have interrupted.
                _thread.start_new_thread(self._run, ())
            except RuntimeError as error:
                raise DeliveryError(
                    f"the {self._name} thread cannot be started: {error}; raise this process's limit of "
                    "threads or memory, then try again"
                ) from None
            self._is_started = True

    def join(self, seconds: float) -> bool:
        """Wait until the thread has ended, if it was started; False after `seconds`."""
        return not self.is_begun or self._ended.wait(seconds)

    def _run(self) -> None:
        if not self._running.acquire(blocking=False):
            return
        try:
            self._work()
        except BaseException as error:
            self.death = f"the {self._name} thread died of {type(error).__name__}; its traceback is on stderr"
            raise
        finally:
            try:
                self._afterwards()
            finally:
                self._ended.open()
