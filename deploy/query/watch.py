"""Follow a collection's estimates in a terminal, or as JSON lines."""

import asyncio
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from aggregator.records.estimate import EstimateRecord, decode_estimate, encode_estimate
from aggregator.records.estimate_parts import Parts
from aggregator.views.latest_estimates import LatestEstimates
from deploy.cli.event_loop import run_until_signalled
from deploy.cli.line_output import end_with_the_reader, write_line
from deploy.cli.options import config_option, servers_option
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import Configuration, load
from estimators.collection import Collection
from estimators.frequency.estimate import QUANTILE_975

TABLE_FRAME = 9  # lines without values: title (3), header and borders (4), number left out, (other)
LOOK_SECONDS = 1.0


@click.command()
@click.argument("collection")
@config_option
@servers_option
def watch(collection: str, config: Path, bootstrap_servers: str | None) -> None:
    """Follow a collection's estimates: a live table, or JSON lines if stdout is not a terminal.

    Example: deniable watch carrier
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    topic_setup.require_readable(loaded.cluster, loaded.topics, loaded.topics.estimates)
    run_until_signalled(watch_collection(loaded, asked))


class EveryEstimate(LatestEstimates):
    """All estimates for programs: those of older windows, too, not only of the newest."""

    def __init__(self) -> None:
        super().__init__()
        self._parts = Parts()

    def take(self, data: bytes) -> EstimateRecord | None:
        """Return the estimate of a record once all its parts have arrived; DecodeError if it is none."""
        return self._parts.add(decode_estimate(data))


async def watch_collection(configuration: Configuration, collection: Collection) -> None:
    """Show each new estimate until interrupted: a live table, or JSON lines if stdout is not a terminal."""
    if not sys.stdout.isatty():
        end_with_the_reader()
        await _follow(EveryEstimate(), configuration, collection, _print_line)
        return
    console, latest = Console(), LatestEstimates()
    with Live(console=console, auto_refresh=False) as live:

        def show() -> None:
            if record := latest.newest.get(collection.name):
                since = latest.stale([collection], time.time()).get(collection.name)
                live.update(table_of(record, max(1, console.height - TABLE_FRAME), since), refresh=True)

        live.update(f"waiting for the first estimate of {collection.name} …", refresh=True)
        following = _follow(latest, configuration, collection, lambda _: show())
        await asyncio.gather(following, _refresh(show))


async def _refresh(show: Callable[[], None]) -> None:
    """Redraw regularly, since figures become old when no estimate arrives."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        show()


async def _follow(
    latest: LatestEstimates,
    configuration: Configuration,
    collection: Collection,
    show: Callable[[EstimateRecord], None],
) -> None:
    def show_own(record: EstimateRecord) -> None:
        if record.collection == collection.name:
            show(record)

    cluster, topics = configuration.cluster, configuration.topics
    await latest.follow(cluster, topics.estimates, topics.partitions, show_own)


def _print_line(record: EstimateRecord) -> None:
    write_line(encode_estimate(record))


def table_of(record: EstimateRecord, rows: int, old_since: int | None = None) -> Table:
    """Build a table of the `rows` most frequent values with 95 % intervals; insignificant values are dim.

    Parameters
    ----------
    record : to show.
    rows : number of values to show.
    old_since : when the next estimate was due, unix seconds; None if it is not due yet.
    """
    state = "final" if record.final else "provisional"
    title = (
        f"{record.collection}: {record.reports:,} reports, {state}\nwindow from {_utc(record.window_start)}"
    )
    if old_since is not None:
        title += f"\n[bold red]old since {_utc(old_since)}[/]"
    table = Table(title=title, title_justify="left")
    table.add_column("value")
    for name in ("share", "95 % interval", "reports"):
        table.add_column(name, justify="right")
    for i in np.argsort(-np.asarray(record.frequency), kind="stable")[:rows]:
        table.add_row(
            escape(record.values[i]),
            f"{record.frequency[i]:.2%}",
            f"{record.low[i]:.2%} – {record.high[i]:.2%}",
            f"{record.count[i]:,.0f}",
            style="" if record.significant[i] else "dim",
        )
    more = max(0, len(record.values) - rows) + record.omitted
    if more:
        table.add_row(f"… {more} more", "", "", "")
    if record.other is not None:
        error = record.other.std_error
        around = "unknown" if error is None else f"± {QUANTILE_975 * error:.2%}"
        table.add_row("(other)", f"{record.other.frequency:.2%}", around, "", style="italic")
    return table


def _utc(unix_seconds: int) -> str:
    return f"{datetime.fromtimestamp(unix_seconds, UTC):%Y-%m-%d %H:%M:%SZ}"
