"""The relay and the edge that `deniable dev` runs if the collection file has their sections."""

import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import click

from deniable.cluster.connection.start_log import StartLog
from deniable.config.file import Configuration
from deniable.deploy.broker.child_processes import Child, deniable_command, spawn
from deniable.deploy.cli.extras import extra_missing
from deniable.deploy.start.trial_folder import EDGE_LOG, RELAY_LOG
from deniable.deploy.start.trial_worker import STEP_SECONDS, TrialWorkerError, ending

READY_SECONDS = 60.0
OPEN = "partition opened"  # in a relay's log
TAKEN = "uploads are taken"  # in an edge's
NO_RELAY = (
    "the edge answers 503, since no relay runs: add the line relay: {} to the file, and start dev again"
)


def require_extra(loaded: Configuration) -> None:
    """Raise ClickException if the file asks for an edge, whose packages are not installed."""
    for module in ("httptools", "uvloop"):
        if loaded.edge is not None and find_spec(module) is None:
            raise click.ClickException(extra_missing("edge", module))


def start_devices(loaded: Configuration, folder: Path, edge_port: int) -> dict[str, tuple[Child, Path]]:
    """Start what the file has sections for; return processes and logs by name.

    The relay gets a revision that grows with each start, so an edit of the file takes effect.
    """
    wanted: dict[str, list[str]] = {}
    if loaded.relay is not None:
        wanted["relay"] = ["relay", "--trial-revision", str(int(time.time()))]
    if loaded.edge is not None:
        wanted["edge"] = ["edge", "--listen", f"127.0.0.1:{edge_port}", "--try-page"]
    logs = {"relay": folder / RELAY_LOG, "edge": folder / EDGE_LOG}
    started = {}
    for name, arguments in wanted.items():
        logs[name].write_text("")
        command = deniable_command(*arguments, "--config", str(loaded.path))
        started[name] = spawn(command, logs[name]), logs[name]
    return started


def ready_devices(started: Mapping[str, tuple[Child, Path]]) -> list[str]:
    """Wait until they work; return what to print: the edge's addresses and public key.

    Raises
    ------
    TrialWorkerError if one of them ends, or does not work within a minute each.
    """
    marks = {"relay": OPEN, "edge": TAKEN if "relay" in started else "try it: "}
    for name, (child, log) in started.items():
        progress = StartLog(READY_SECONDS)
        while marks[name] not in _text(log):
            if child.poll() is not None:
                raise TrialWorkerError(ending(f"the {name} did not start", log))
            if not progress.has_time(f"the {name}; its log is {log}"):
                raise TrialWorkerError(ending(f"the {name} is not ready after {READY_SECONDS:g} s", log))
            time.sleep(STEP_SECONDS)
    if "edge" not in started:
        return []
    found = [line for line in _text(started["edge"][1]).splitlines() if line.startswith(ANNOUNCED)]
    return found if "relay" in started else [*found, NO_RELAY]


ANNOUNCED = ("uploads: ", "public key: ", "try it: ")  # how an edge's lines begin


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")
