"""What `deniable produce` says on stderr: progress on a terminal, what it waits for, a summary at the end.

Rule: what is said depends on how many lines and reports there are, never on what they say.
"""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from producers.metrics.counters import Counters

TELL_SECONDS = 0.5
WHY_REFUSED = {
    "over_budget": "over the budget of their client",
    "over_window": "over their client's limit for a window",
    "too_early": "too early for their window",
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


class WaitView:
    """Says what is waited for once that takes longer than TELL_SECONDS, and each thing once in a run."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    @contextmanager
    def shown(self, said: str) -> Iterator[None]:
        """What is waited for within."""
        timer = threading.Timer(TELL_SECONDS, self._tell, (said,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _tell(self, said: str) -> None:
        if said not in self._told:
            self._told.add(said)
            click.echo(said, err=True)


def summary(counters: Counters, skipped: int, seconds: float) -> str:
    """One line about a run that took so long and skipped so many lines."""
    sent = sum(counters.acknowledged.values())
    rate = f"{sent / max(seconds, 1e-9):.0f} reports/s"
    said = [f"{number_of(sent, 'report')} sent in {number_of(counters.packs, 'pack')} ({rate})"]
    # Fewer than there are while some of this run's own still wait.
    if (earlier := sent - sum(counters.stored.values())) > 0:
        said.append(f"{earlier} of those were kept by earlier runs")
    if skipped:
        said.append(f"{number_of(skipped, 'line')} skipped")
    for (_, reason), count in counters.refused.items():
        said.append(f"{number_of(count, 'report')} refused, {WHY_REFUSED[reason]}")
    if expired := sum(counters.expired.values()):
        said.append(f"{expired} of those sent reached Kafka after the grace of their window: not counted")
    if unsendable := counters.unsendable:
        packs_are = number_of(unsendable, "pack")
        said.append(
            f"{packs_are} kept that cannot be sent: damaged, too large for the broker, or of a later version"
        )
    if (packs := counters.backlog.packs - unsendable) > 0:
        said.append(f"{number_of(packs, 'pack')} kept for the next deniable produce with this folder")
    return "; ".join(said)


def number_of(count: int, thing: str) -> str:
    """So many things."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
