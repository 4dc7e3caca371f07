"""Runs of `deniable backfill` in this process, in the present folder."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.sources.files import files_of
from deniable.analysis.tables.file_formats import read_table
from deniable.analysis.tables.window_table import window_schema, windows_of
from deniable.config.file import load
from deniable.deploy.backfill import command
from deniable.estimators.collection import Collection

HOUR, DAY = 3600, 86_400
START = 1_767_225_600  # 2026-01-01, a Thursday
FILE = f"""\
collections:
  - name: plan
    mechanism: k-rr
    values: [free, team]
    epsilon: 2
    window_seconds: {HOUR}
    grace_seconds: 60
    minimum_reports: 20
    reports_per_window: 2
    budget: {{epsilon: 8, delta: 1e-6, period_seconds: {DAY}}}
  - {{name: word, mechanism: rappor, bits: 64, hashes: 2, cohorts: 4, f: 0.25, p: 0.35, q: 0.65,
     memoize: true, candidates: [free, team], window_seconds: {HOUR}, grace_seconds: 60, minimum_reports: 20,
     budget: none}}
  - {{name: tree, mechanism: prefix-tree, epsilon: 2, lengths: [2, 4], window_seconds: {HOUR},
     grace_seconds: 60, budget: none}}
  - {{name: shown, mechanism: local-hash-longitudinal, epsilon_inf: 2, epsilon_one: 1, candidates: [free],
     window_seconds: {HOUR}, grace_seconds: 60,
     budget: {{epsilon: 8, delta: 1e-6, period_seconds: {DAY}, values: any, changes: 2}}}}
"""

Event = tuple[str, str, int]  # client, value, unix seconds


def events_of(number: int, hours: int = 30, clients: int = 300, seed: int = 1) -> list[Event]:
    """Return random events from START on, in no order of time."""
    chance = random.Random(seed)
    return [
        (
            f"u{chance.randrange(clients)}",
            chance.choice(("free", "team")),
            START + chance.randrange(hours * HOUR),
        )
        for _ in range(number)
    ]


def write_events(events: Iterable[Event], name: str = "events.csv") -> None:
    lines = [",".join(map(str, event)) for event in events]
    Path(name).write_text("\n".join(["user,plan,at", *lines]) + "\n")


def line_of(
    *options: str, collection: str = "plan", clients: str | None = "user", past: str = ""
) -> list[str]:
    """Return the arguments of a run with events.csv, and the outputs `past` and `counts`, or those given."""
    line = [collection, "--input", "events.csv", "--field", "plan", "--time-field", "at"]
    line += ["--no-clients"] if clients is None else ["--clients", clients]
    return [*line, *(past or "--output past --counts counts").split(), *options]


def backfill(*options: str, **asked: Any) -> Result:
    """Run the command with the arguments of `line_of`."""
    return CliRunner().invoke(root, ["backfill", *line_of(*options, **asked)])


def said(ended: Result) -> list[str]:
    """Return what a run said of its events and windows, at its end; it must have ended well."""
    assert (ended.exit_code, ended.stdout) == (0, ""), ended.output
    lines = ended.stderr.splitlines()
    return lines[next(i for i, line in enumerate(lines) if " read; " in line) :]


def collection_of(name: str = "plan") -> Collection:
    return load(Path("deniable.yaml"), environment={}).collection(name)


def counts_in(folder: str, name: str = "plan") -> dict[int, WindowCounts]:
    """Return the counts of all windows in a folder; a window that is there twice is refused."""
    collection, found = collection_of(name), dict[int, WindowCounts]()
    for path in files_of(folder, name):
        windows = windows_of(collection, read_table(path, window_schema(), {"collection": name}))
        assert not found.keys() & windows.keys()
        found |= windows
    return found


@click.group()
def root() -> None:
    """Stands for `deniable`, whose logs and signals are the process's."""


root.add_command(command.backfill)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a collection file, which is the present one."""
    monkeypatch.chdir(tmp_path)
    Path("deniable.yaml").write_text(FILE)
    return tmp_path
