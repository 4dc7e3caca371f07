"""Child processes that never outlive their parent."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

GUARD = Path(__file__).with_name("guard.py")
TAIL_BYTES = 16_384

Child = subprocess.Popen[bytes]


def spawn(
    command: Sequence[str | Path],
    log_file: Path,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    own_session: bool = True,
) -> Child:
    """Start a command without standard input, which the kernel kills when this process ends.

    Parameters
    ----------
    command : program and arguments.
    log_file : its stdout and stderr are appended here.
    environment : variables added to this process's.
    folder : its working folder; None: this process's.
    own_session : True to keep signals to this process's group, such as Ctrl-C, from the child.

    Returns
    -------
    Child, to pass to `stop`. A command that cannot run logs the reason and ends with status 1.

    Raises
    ------
    RuntimeError outside the main thread: the kernel would kill the child when the starting thread ends.
    """
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(f"{command[0]} must be started by the main thread: it would end with this one")
    guarded = [sys.executable, "-I", "-S", GUARD, str(os.getpid()), *command]
    with log_file.open("ab") as log:
        return subprocess.Popen(  # noqa: S603 - no shell, and the callers' own commands
            guarded,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            start_new_session=own_session,
        )


def deniable_command(*arguments: str) -> list[str]:
    """Return how to run a command of `deniable` as a child.

    -P: without it Python would look for `deploy` in the working folder first, and run a user's deploy.py.
    """
    return [sys.executable, "-P", "-m", "deniable", *arguments]


def signal_group(child: Child, number: signal.Signals) -> None:
    """Send a signal to a child, or to its whole session if it has one; nothing once it was waited for."""
    if child.returncode is None:
        with suppress(ProcessLookupError):
            leads = os.getpgid(child.pid) == child.pid
            (os.killpg if leads else os.kill)(child.pid, number)


def stop(children: Iterable[Child], seconds: float = 10.0) -> None:
    """End children: SIGTERM to all, SIGKILL to those that still run after `seconds`.

    Paused ones are continued, since a stopped process cannot handle SIGTERM. Calling it again does nothing.
    """
    running = [child for child in children if child.poll() is None]
    for child in running:
        signal_group(child, signal.SIGTERM)
        signal_group(child, signal.SIGCONT)
    deadline = time.monotonic() + seconds
    for child in running:
        with suppress(subprocess.TimeoutExpired):
            child.wait(max(0.0, deadline - time.monotonic()))
        signal_group(child, signal.SIGKILL)
        child.wait()


def last_lines(log_file: Path, start: int = 0, count: int = 15) -> str:
    """Return the last `count` lines of a log after its byte `start`."""
    with log_file.open("rb") as log:
        size = log.seek(0, os.SEEK_END)
        log.seek(max(start, size - TAIL_BYTES))
        text = log.read().decode(errors="replace")
    return "\n".join(text.splitlines()[-count:])
