"""Take up a changed collection file: SIGHUP, or a change of the file, starts the program anew in its process.

Rule: a reload is a restart, and nothing else. What a start checks is checked before anything stops: a file
that would be refused then is refused now, and the program goes on with the former one. Then it stops in good
order, as by SIGTERM, and the same process executes the same command.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from types import FrameType

import click
import structlog

from deniable.cluster.connection.probe import RefusedError, UnreachableError
from deniable.deploy.cli.main import kafka_errors
from deniable.deploy.cli.signals import handle
from deniable.estimators.errors import DeniableError

LOOK_SECONDS = 5.0

log = structlog.get_logger()

reload_option = click.option(
    "--reload-changes",
    is_flag=True,
    help="Take up a changed collection file within seconds, as after SIGHUP. For a file that only programs "
    "of this kind read: workers must take it up before relays, relays before edges.",
)


class ReloadRefusedError(DeniableError, RuntimeError):
    """A changed file would not be accepted at a start, or is not newer; the message says what to do."""


class Reload(threading.Thread):
    """Waits for a changed file in a daemon thread, which never delays the end of the process.

    Parameters
    ----------
    file : the collection file.
    check : does what a start checks with the file as it is now; returns its revision.
    watches : whether a change of the file is enough.
    """

    def __init__(self, file: Path, check: Callable[[], int], watches: bool = False) -> None:
        super().__init__(name="reload", daemon=True)
        self._file = file
        self._check = check
        self._watches = watches
        self._asked = threading.Event()
        self._is_due = False
        self._refusal = ""
        self._taken = self._seen = self._content()
        self._had_terminal = _has_terminal()

    def start(self) -> None:
        """Begin, in the main thread. Until then SIGHUP ends the process; after a reload, it waits."""
        handle(signal.SIGHUP, self._hang_up)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
        super().start()

    def run(self) -> None:
        """Check each change; stop the program by SIGTERM after the first one that is right."""
        while not self._is_due:
            is_asked = self._asked.wait(LOOK_SECONDS)
            self._asked.clear()
            content = self._content()
            if is_asked or content != self._seen:
                self._refusal = ""
            self._seen = content
            if is_asked or (self._watches and content != self._taken):
                self._consider(content)

    def withdraw(self) -> None:
        """Let the stop that is under way be the end: another signal asked for that."""
        self._is_due = False

    def restart_if_due(self) -> None:
        """Call it once the program has stopped; does not return if a checked file waits."""
        if self._is_due:
            # The new program has no handler at first.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
            sys.stdout.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606 - this command

    def _consider(self, content: bytes) -> None:
        refusals: tuple[type[BaseException], ...]
        refusals = (DeniableError, click.ClickException, OSError, *kafka_errors())
        try:
            revision = self._check()
        except refusals as error:
            self._refuse(str(error) or type(error).__name__)
            if isinstance(error, UnreachableError) and not isinstance(error, RefusedError):
                return  # not judged: it is looked at again
        else:
            log.info("reload", file=str(self._file), revision=revision)
            self._is_due = True
            os.kill(os.getpid(), signal.SIGTERM)
        self._taken = content

    def _refuse(self, reason: str) -> None:
        """Log why a file is refused; once for each content and signal, while Kafka cannot be asked."""
        if reason != self._refusal:
            log.error("reload refused, the former file stays in force", reason=reason)
        self._refusal = reason

    def _content(self) -> bytes:
        with suppress(OSError):
            return blake2b(self._file.read_bytes()).digest()
        return b""

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        """SIGHUP has two meanings: the terminal is gone, so this ends like it; else reload."""
        if self._had_terminal and not _has_terminal():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            self._asked.set()


def check_newer(former: tuple[int, object], new: tuple[int, object], what: str) -> None:
    """Check that a file with other content has a higher revision.

    Parameters
    ----------
    former, new : revision, and what it decides.
    what : names that.

    Raises
    ------
    ReloadRefusedError.
    """
    if new[0] < former[0] or (new[0] == former[0] and new[1] != former[1]):
        raise ReloadRefusedError(
            f"{what} changed: the revision of the collection file must be above {former[0]}, got {new[0]}"
        )


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True
