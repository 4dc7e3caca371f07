"""The messages of `deniable produce` on stderr: progress on a terminal, waits, a summary at the end.

Rule: messages depend on numbers of lines and reports, never on values.
"""

import logging
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from deniable.config.settings.allowance import Budget
from deniable.deploy.produce.timing import DEFAULT, RunTiming
from deniable.producers.metrics.counters import UNKNOWN, Counters
from deniable.protocol.words import number_of

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

WHY_REFUSED = {
    "over_budget": "over the budget of their client",
    "over_window": "over their client's limit for a window",
    "too_early": "too early for their window",
    "too_late": "too late for their window",
}
WHY_REJECTED = {
    "unknown_collection": "which counts other parameters",
    "too_early": "too early for their window",
    "too_late": "too late for their window",
    "malformed": "as malformed",
    "bad_cohort": "as malformed",
    "bad_value": "as malformed",
    "other": "without a known reason",
}


class ProduceView:
    """A progress line with position and speed, shown only on a terminal and if rich is installed."""

    def __init__(self) -> None:
        self._bar = _progress() if sys.stderr.isatty() else None
        self._task: TaskID | None = None

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the line; logs appear above it meanwhile."""
        if self._bar is None:
            yield
            return
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
        """Update the line; None for unknown figures."""
        if self._bar is None:
            return
        text = f"{number_of(reports, 'report', ',')}, {reports / max(seconds, 1e-9):,.0f} a second"
        if self._task is None:
            self._task = self._bar.add_task("", total=None, text=text)
        self._bar.update(self._task, completed=bytes_done, total=total_bytes, text=text)


def _progress() -> "Progress | None":
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    except ModuleNotFoundError:  # an installation for producers alone
        return None
    return Progress(
        SpinnerColumn(),
        BarColumn(),
        TextColumn("{task.fields[text]}"),
        console=Console(stderr=True),
        redirect_stdout=False,
        transient=True,
    )


class WaitView:
    """Prints what a run waits for if that takes longer than `timing.notice`; each message once in a run."""

    def __init__(self, timing: RunTiming = DEFAULT) -> None:
        self._timing = timing
        self._printed: set[str] = set()

    @contextmanager
    def shown(self, notice: str) -> Iterator[None]:
        """Print a message if the block takes long."""
        timer = threading.Timer(self._timing.notice, self._print, (notice,))
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _print(self, notice: str) -> None:
        if notice not in self._printed:
            self._printed.add(notice)
            click.echo(notice, err=True)


def summary(
    counters: Counters, skipped: int, seconds: float, servers: str, collection: str, *, keeps: bool = True
) -> str:
    """Summarize a run in one line.

    Parameters
    ----------
    counters : of the run's producer.
    skipped : lines of the input that became no report.
    seconds : that the run took.
    servers : bootstrap servers, or the edge, that the reports went to.
    collection : name of the run's; earlier runs with the same folder may have kept reports of others.
    keeps : whether the next run sends what was not; False where the folder ends with the run.
    """
    sent = sum(counters.acknowledged.values())
    rate = f"{sent / max(seconds, 1e-9):.0f} reports/s"
    parts = [f"{number_of(sent, 'report')} sent in {number_of(counters.packs, 'pack')} ({rate})"]
    if sent:
        parts[0] += f" to {servers}"
    # A lower bound while some of this run's reports still wait.
    if (earlier := sent - sum(counters.stored.values())) > 0:
        parts.append(f"{earlier} of those kept by earlier runs")
    for name, count in counters.acknowledged.items():
        if name != collection:
            parts.append(f"{count} of those{_of(name)}")
    if skipped:
        parts.append(f"{number_of(skipped, 'line')} skipped")
    for (_, reason), count in counters.refused.items():
        parts.append(f"{number_of(count, 'report')} refused, {WHY_REFUSED[reason]}")
    for (name, reason), count in counters.rejected.items():
        what = number_of(count, "report") + ("" if name == collection else _of(name))
        parts.append(f"{what} rejected by the edge and lost, {WHY_REJECTED[reason]}")
    for name, count in counters.expired.items():
        what = f"{count} of those sent" + ("" if name == collection else _of(name))
        parts.append(f"{what} reached Kafka after the grace of their window: not counted")
    if unsendable := counters.unsendable:
        packs_are = number_of(unsendable, "pack")
        parts.append(
            f"{packs_are} kept but cannot be sent: damaged, too large, of a later version, or for another "
            "destination"
        )
    if keeps and (packs := counters.backlog.packs - unsendable) > 0:
        parts.append(f"{number_of(packs, 'pack')} kept for the next deniable produce with this folder")
    return "; ".join(parts)


def _of(name: str) -> str:
    if name == UNKNOWN:
        return " of collections, or of parameters, that are not in the collection file"
    return f" of {name}"


def spent_notice(counters: Counters, budget: Budget | None, now: float) -> str:
    """Say when clients can report again if this run's reports were all over their budgets; else empty.

    Parameters
    ----------
    counters : of the run's producer.
    budget : of its collection.
    now : unix seconds.
    """
    is_over = any(reason == "over_budget" for _, reason in counters.refused)
    if budget is None or not is_over or any(counters.stored.values()):
        return ""
    end = (int(now // budget.period_seconds) + 1) * budget.period_seconds
    return (
        f"the clients have spent their budgets; the period ends at {_utc(end)}, and the next one begins with "
        "whole budgets. deniable spent shows what a client has spent"
    )


def _utc(unix_seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(unix_seconds, UTC):%Y-%m-%d %H:%M:%SZ}"
    except (ValueError, OverflowError):  # beyond the year 9999
        return f"{unix_seconds} s after 1970"
