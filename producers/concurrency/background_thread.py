"""A thread that somebody depends on: it is started once, and its end and its death are seen."""

import _thread
import threading
from collections.abc import Callable

from producers.concurrency.synchronization import Latch
from producers.errors import DeliveryError


class Background:
    """A thread that ends with the process at the latest.

    Parameters
    ----------
    name : what it does, for messages.
    work : what it runs.
    afterwards : what it runs then, also when `work` raised, and when that can be seen in `death`.

    Attributes
    ----------
    death : what `work` raised, by type, once it has; None otherwise.
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
        """Start it, unless somebody did. Waits for nobody.

        Raises
        ------
        DeliveryError if the system has no thread to give; the next call tries again.
        """
        if self._begun.acquire(blocking=False):
            try:
                # Not by `threading`: it takes a lock for it, which a signal handler may have interrupted.
                _thread.start_new_thread(self._run, ())
            except RuntimeError as error:
                self._begun.release()
                raise DeliveryError(
                    f"the {self._name} thread cannot be started: {error}; raise this process's limit of "
                    "threads or memory, then try again"
                ) from None

    def join(self, seconds: float) -> bool:
        """Wait until it has ended, if it was started; False when it has not within so many seconds."""
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
