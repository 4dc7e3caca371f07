"""What `deniable produce` says on stderr: progress on a terminal, and a summary at the end.

Rule: what is said depends on how many lines and reports there are, never on what they say.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from producers.counters import Counters

WHY_REFUSED = {
    "over_budget": "over the budget of their client",
    "over_window": "over their client's limit for a window",
    "too_late": "too late for their window",
}


class ProduceView:
    """How far the input is read and how fast, in a line that a terminal shows and nothing else does."""

    def __init__(self) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(),
            TextColumn("{task.fields[said]}"),
            console=Console(stderr=True),
            redirect_stdout=False,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task: TaskID | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show it; logs go above it meanwhile."""
        with self._bar:
            handlers = [each for each in logging.getLogger().handlers if type(each) is logging.StreamHandler]
            before = [handler.setStream(sys.stderr) for handler in handlers]
            try:
                yield
            finally:
                for handler, stream in zip(handlers, before, strict=True):
                    if stream is not None:
                        handler.setStream(stream)

    def update(self, reports: int, seconds: float, bytes_done: int | None, total_bytes: int | None) -> None:
        """Tell how far it is; None where nobody knows."""
        said = f"{reports:,} reports, {reports / max(seconds, 1e-9):,.0f} a second"
        if self._task is None:
            self._task = self._bar.add_task("", total=None, said=said)
        self._bar.update(self._task, completed=bytes_done, total=total_bytes, said=said)


def summary(counters: Counters, skipped: int, seconds: float) -> str:
    """One line about a run that took so long and skipped so many lines."""
    sent = sum(counters.acknowledged.values())
    said = [f"{sent} reports sent in {counters.packs} packs ({sent / max(seconds, 1e-9):.0f} reports/s)"]
    if skipped:
        said.append(f"{skipped} lines skipped")
    for (_, reason), count in counters.refused.items():
        said.append(f"{count} reports refused, {WHY_REFUSED[reason]}")
    if expired := sum(counters.expired.values()):
        said.append(f"{expired} of those sent came too late for their window and are not counted")
    if counters.backlog.packs:
        said.append(f"{counters.backlog.packs} packs wait for the next deniable produce with this folder")
    return "; ".join(said)
