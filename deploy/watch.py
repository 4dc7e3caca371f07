"""Following a collection's estimates in a terminal, or as JSON lines."""

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime

import click
import numpy as np
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from aggregator import estimate_record
from aggregator.board import Board
from aggregator.estimate_record import EstimateRecord
from deploy.collection_file import Configuration
from estimators.collection import Collection
from estimators.estimate import QUANTILE_975

TABLE_FRAME = 8  # lines of the table that are no values: title, head, borders, what is left out, (other)


class EveryEstimate(Board):
    """For programs: not the newest window alone, but whatever is published of older ones too."""

    def take(self, data: bytes) -> EstimateRecord | None:
        """The estimate in a record of the topic; DecodeError when it holds none."""
        return estimate_record.decode(data)


async def watch_collection(configuration: Configuration, collection: Collection) -> None:
    """Show each new estimate until interrupted: a live table, or JSON lines when stdout is no terminal."""
    if not sys.stdout.isatty():
        _end_with_the_reader()
        await _follow(EveryEstimate(), configuration, collection, _print_line)
        return
    console = Console()
    with Live(console=console, auto_refresh=False) as live:

        def show(record: EstimateRecord) -> None:
            live.update(table_of(record, max(1, console.height - TABLE_FRAME)), refresh=True)

        live.update(f"waiting for the first estimate of {collection.name} …", refresh=True)
        await _follow(Board(), configuration, collection, show)


async def _follow(
    board: Board,
    configuration: Configuration,
    collection: Collection,
    show: Callable[[EstimateRecord], None],
) -> None:
    def show_own(record: EstimateRecord) -> None:
        if record.collection == collection.name:
            show(record)

    kafka, topics = configuration.kafka, configuration.topics
    await board.follow(kafka.bootstrap_servers, topics.estimates, topics.partitions, show_own)


def _print_line(record: EstimateRecord) -> None:
    try:
        click.echo(estimate_record.encode(record))
    except BrokenPipeError:
        _end_quietly()


def _end_with_the_reader() -> None:
    """End when the program that reads our stdout ends, even if no estimate comes to be written to it."""
    loop, number = asyncio.get_running_loop(), sys.stdout.fileno()

    def end() -> None:
        loop.remove_reader(number)
        _end_quietly()

    if stat.S_ISFIFO(os.fstat(number).st_mode):
        loop.add_reader(number, end)  # a pipe's write end becomes readable when its reader goes


def _end_quietly() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
    sys.exit(0)


def table_of(record: EstimateRecord, rows: int) -> Table:
    """The `rows` most frequent values with their 95 % intervals; what is not significant is dim."""
    state = "final" if record.final else "provisional"
    window = f"{datetime.fromtimestamp(record.window_start, UTC):%Y-%m-%d %H:%M:%SZ}"
    table = Table(
        title=f"{record.collection}: {record.reports:,} reports, {state}\nwindow from {window}",
        title_justify="left",
    )
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
    if len(record.values) > rows:
        table.add_row(f"… {len(record.values) - rows} more", "", "", "")
    if record.other is not None:
        error = record.other.std_error
        around = "unknown" if error is None else f"± {QUANTILE_975 * error:.2%}"
        table.add_row("(other)", f"{record.other.frequency:.2%}", around, "", style="italic")
    return table
