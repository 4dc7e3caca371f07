"""A background thread that is started once, and whose end or death is visible."""

import _thread
import threading
from collections.abc import Callable

from producers.concurrency.synchronization import Latch
from producers.errors import DeliveryError


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
        self._begun = threading.Lock()
        self._ended = Latch()

    @property
    def is_begun(self) -> bool:
        """Whether it was started."""
        return self._begun.locked()

    def start(self) -> None:
        """Start the thread, unless it was started. Never blocks.

        Raises
        ------
        DeliveryError if the system cannot start a thread; the next call tries again.
        """
        if self._begun.acquire(blocking=False):
            try:
                # Not by `threading`: it takes a lock, whose holder a signal handler may have interrupted.
                _thread.start_new_thread(self._run, ())
            except RuntimeError as error:
                self._begun.release()
                raise DeliveryError(
                    f"the {self._name} thread cannot be started: {error}; raise this process's limit of "
                    "threads or memory, then try again"
                ) from None

    def join(self, seconds: float) -> bool:
        """Wait until the thread has ended, if it was started; False after `seconds`."""
        return not self.is_begun or self._ended.wait(seconds)

    def _run(self) -> None:
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
