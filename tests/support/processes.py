"""Processes under test: watched from outside, killed or paused, at any time or at a named point inside.

An order, `POINT ACTION PASSES` in the file `order` of a process's folder, is executed by the process itself
when it passes that point for the given time. Whoever starts a process says which points it has.
"""

import ctypes
import importlib
import json
import multiprocessing
import os
import random
import runpy
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Self, cast

from deniable.deploy.broker.child_processes import Child, last_lines, signal_group
from deniable.deploy.broker.guard import PR_SET_PDEATHSIG
from deniable.deploy.broker.ports import free_port
from deniable.deploy.cli.commands import COMMANDS
from tests.support.paths import REPOSITORY

ORDER = "order"


def state_of(pid: int) -> str:
    """Return the state letter of a process; `Z` also for one that has ended. Source: proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def wait_until(happens: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Return True as soon as a condition holds, False if it does not within `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if happens():
            return True
        time.sleep(0.02)
    return happens()


def new_port() -> int:
    """Return a free loopback port that this process has not drawn before: servers begin later to listen."""
    while (port := free_port()) in _drawn:
        pass
    _drawn.add(port)
    return port


_drawn: set[int] = set()


def printed_seed() -> int:
    """Return the seed of a random round: that of the variable SEED, else another one each time."""
    seed = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 2**32)
    print(f"SEED={seed}")  # noqa: T201 - shown by pytest if the test fails
    return seed


def write_order(folder: Path, point: str, action: str = "kill", passes: int = 1) -> None:
    """Order an action for when the process of this folder passes a point, see `Process.order`."""
    folder.mkdir(exist_ok=True)
    written = folder / f"{ORDER}.new"
    written.write_text(f"{point} {action} {passes}")
    written.rename(folder / ORDER)


class FaultPoints:
    """The points of this process, which executes the orders in its folder at them."""

    def __init__(self, folder: str | Path, failure: type[Exception] = OSError) -> None:
        self._file = Path(folder) / ORDER
        self._failure = failure
        self._passed = 0

    def is_ordered(self, point: str) -> bool:
        """Return whether there is an order for this point."""
        return self._order()[0] == point

    def at(self, point: str) -> None:
        """Pass a point: execute the order for it, if this is the time."""
        ordered, action, passes = self._order()
        if not ordered:
            self._passed = 0
        if ordered != point:
            return
        self._passed += 1
        if self._passed < int(passes):
            return
        self._passed = 0
        self._file.unlink()
        print(f"fault point {point}: {action}", flush=True)  # noqa: T201 - for the log
        match action:
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "pause":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "fail":
                raise self._failure(f"fault point {point}")

    def _order(self) -> tuple[str, str, str]:
        try:
            point, action, passes = self._file.read_text().split()
        except FileNotFoundError:
            return "", "", "1"
        return point, action, passes


class Forked:
    """A process forked from another than this; `stop` takes it like a child."""

    def __init__(self, process: ForkServerProcess) -> None:
        assert process.pid is not None
        self._process = process
        self.pid = process.pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        status = self.poll()
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def fork(
    module: str,
    arguments: Sequence[str],
    folder: Path,
    streams: tuple[Path, Path, Path],
    environment: Mapping[str, str] | None = None,
    own_session: bool = True,
) -> Child:
    """Run a module as `python -m` does, in a process forked from one that has imported all commands.

    That spares it 1.5 seconds of a processor. It ends with this process, and has no command line of its own.

    Parameters
    ----------
    folder : its working folder.
    streams : its standard input, output and error; the last two are appended to.
    environment : variables added to this process's.
    own_session : True to keep signals to this process's group, such as Ctrl-C, from it.
    """
    environment = {**os.environ, **(environment or {})}
    process = _server().Process(
        target=_run, args=(module, tuple(arguments), folder, streams, environment, own_session)
    )
    process.start()
    return cast("Child", Forked(process))


@cache
def _server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    commands = [path.partition(":")[0] for path, _ in COMMANDS.values()]
    context.set_forkserver_preload(["deniable.deploy.cli.main", *commands])
    return context


def _run(
    module: str,
    arguments: tuple[str, ...],
    folder: Path,
    streams: tuple[Path, Path, Path],
    environment: dict[str, str],
    own_session: bool,
) -> None:
    if own_session:
        os.setsid()
    # The process that forked this one ends with the tests'.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    written = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    for number, (stream, flags) in enumerate(zip(streams, (os.O_RDONLY, written, written), strict=True)):
        opened = os.open(stream, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, buffering, encoding="utf-8", closefd=False)
        for number, (mode, buffering) in enumerate((("r", -1), ("w", -1), ("w", 1)))
    )
    sys.argv = [module, *arguments]
    warnings.simplefilter("ignore")
    runpy.run_module(module, run_name="__main__", alter_sys=True)


@dataclass(eq=False)
class Process:
    """A process, its log, and the folder it works in, which has its orders; `port`, where it was told one."""

    child: Child
    log: Path
    folder: Path
    port: int = 0

    @classmethod
    def start(
        cls,
        module: str,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> Self:
        """Run a module in a folder, which may have an order; its log is beside it, and ends in `.log`.

        It ends with this process.
        """
        folder.mkdir(exist_ok=True)
        log = folder.with_suffix(".log")
        log.touch()
        environment = {"PYTHONPATH": str(REPOSITORY), **(environment or {})}
        return cls(fork(module, arguments, folder, (Path(os.devnull), log, log), environment), log, folder)

    @classmethod
    def call(cls, function: Callable[..., object], *arguments: object, folder: Path) -> Self:
        """Start a process that calls a function of a test module; paths become strings."""
        name = f"{function.__module__}:{function.__name__}"
        return cls.start("tests.support.processes", [name, json.dumps(arguments, default=str)], folder)

    @property
    def running(self) -> bool:
        return self.child.poll() is None

    def says(self, text: str) -> int:
        """Return how often a text occurs in its log."""
        return self.log.read_text(errors="replace").count(text)

    def describe(self) -> str:
        """Return the last lines of its log."""
        return f"--- {self.log.name}\n{last_lines(self.log)}"

    def signal(self, number: signal.Signals) -> None:
        signal_group(self.child, number)

    def kill(self) -> None:
        """Kill it, and wait until it has ended."""
        self.signal(signal.SIGKILL)
        self.child.wait()

    def order(self, point: str, action: str = "kill", passes: int = 1) -> None:
        """Order an action for when it passes a point for the `passes`-th time; replaces an earlier order."""
        write_order(self.folder, point, action, passes)

    def withdraw_order(self) -> None:
        (self.folder / ORDER).unlink(missing_ok=True)

    def await_kill(self, point: str, seconds: float = 120.0) -> None:
        """Wait until it has killed itself at a point as ordered; AssertionError if it ends otherwise."""
        assert wait_until(lambda: not self.running, seconds), f"{point} is not reached\n{self.describe()}"
        assert self.child.returncode == -signal.SIGKILL, self.describe()
        assert self.says(f"fault point {point}: kill"), self.describe()


def descendants(pid: int) -> set[int]:
    """Return the ids of a process's children, and of theirs, now."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    children = {int(child) for each in threads for child in each.read_text().split()}
    return children.union(*map(descendants, children))


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    function: Any = getattr(importlib.import_module(module), name)
    function(*json.loads(sys.argv[2]))


if __name__ == "__main__":
    main()
