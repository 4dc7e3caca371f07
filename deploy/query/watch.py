"""Follow a collection's estimates in a terminal, or as JSON lines."""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec
import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from deniable.aggregator.records.estimate import (
    EstimateRecord,
    NumberMean,
    NumberQuantile,
    PairRecord,
    decode_estimate,
    encode_estimate,
)
from deniable.aggregator.records.estimate_parts import Parts
from deniable.aggregator.views.latest_estimates import LatestEstimates
from deniable.cluster.connection.outage import Outage
from deniable.cluster.reading.topic_reader import records_since
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration, load
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.line_output import end_with_the_reader, write_line
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.offline.estimate_table import (
    contradictions,
    incomplete_list,
    name_column,
    p_value_text,
    row_names,
    search_of_past,
    without_candidates,
)
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.prefix_tree import utf_8
from deniable.estimators.mechanisms.mechanism import longest_of
from deniable.protocol.words import number_of

TABLE_FRAME = 9  # lines without values: title (3), header and borders (4), number left out, (other)
WIDE_COLUMNS = 74  # of a terminal that has room for two intervals beside a name of 13 characters
NARROW_CELLS = 4  # of a row without the interval for all
FIGURE_LINES = 10  # of a number's mean and quantiles, and the border below them, but for (other)
CAPTION = 4  # lines about a pair's fields or an incomplete list, wrapped at the width of the table
LOOK_SECONDS = 1.0
NEW_WINDOWS = 5  # in which the page calls a found text new, too


@click.command()
@click.argument("collection")
@config_option
@servers_option
@click.option(
    "--once", is_flag=True, help="Print the newest estimate and end: status 0, or 1 if there is none yet."
)
def watch(collection: str, config: Path, bootstrap_servers: str | None, once: bool) -> None:
    """Follow a collection's estimates: a live table, or JSON lines if stdout is not a terminal.

    Example: deniable watch carrier --once
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    silence_clients()
    topic_checks.require_readable(loaded.cluster, loaded.topics, loaded.topics.estimates)
    if once:
        print_newest(loaded, asked)
        return
    run_until_signalled(watch_collection(loaded, asked))


class EveryEstimate(LatestEstimates):
    """All estimates for programs: those of older windows, too, not only of the newest."""

    def __init__(self) -> None:
        super().__init__()
        self._parts = Parts()

    def take(self, data: bytes) -> EstimateRecord | None:
        """Return the estimate of a record once all its parts have arrived; DecodeError if it is none."""
        return self._parts.add(decode_estimate(data))


def print_newest(configuration: Configuration, collection: Collection) -> None:
    """Print the newest estimate that the topic holds: a table, or a JSON line if stdout is no terminal.

    Raises
    ------
    click.ClickException, with status 1, if it holds none.
    """
    latest, cluster, topics = LatestEstimates(), configuration.cluster, configuration.topics

    async def read() -> None:
        partition = range(topics.partitions)
        async with aclosing(records_since(cluster, topics.estimates, partition, 0)) as records:
            async for _, record in records:
                if (record.key or b"").startswith(f"{collection.name}/".encode()):
                    with suppress(msgspec.DecodeError):
                        latest.take(record.value or b"")

    asyncio.run(read())
    record = latest.newest.get(collection.name)
    if record is None:
        raise click.ClickException(
            f"{topics.estimates} has no estimate of {collection.name} yet: a window is published once it has "
            f"{number_of(collection.minimum_reports, 'report')}; without --once, watch waits for it"
        )
    if not sys.stdout.isatty():
        _print_line(record)
        return
    since = latest.stale([collection], time.time()).get(collection.name)
    console = Console()
    console.print(_shown(record, collection, len(record.values) + FIGURE_LINES, since, console.width))


async def watch_collection(configuration: Configuration, collection: Collection) -> None:
    """Show each new estimate until interrupted: a live table, or JSON lines if stdout is not a terminal."""
    outage = Outage(configuration.cluster, "nothing new is shown", (configuration.topics.estimates,))
    if not sys.stdout.isatty():
        end_with_the_reader()
        await _follow(EveryEstimate(), configuration, collection, _print_line, outage)
        return
    console, latest = Console(), LatestEstimates()
    with Live(console=console, auto_refresh=False) as live:

        def show() -> None:
            if record := latest.newest.get(collection.name):
                since = latest.stale([collection], time.time()).get(collection.name)
                caption = CAPTION if caption_of(record) else 0
                rows = max(1, console.height - TABLE_FRAME - caption)
                table = _shown(record, collection, rows, since, console.width)
                live.update(Group(table, Text(str(outage))) if outage.cause else table, refresh=True)

        live.update(f"waiting for the first estimate of {collection.name} …", refresh=True)
        following = _follow(latest, configuration, collection, lambda _: show(), outage)
        await asyncio.gather(following, _refresh(show))


def _shown(
    record: EstimateRecord,
    collection: Collection,
    rows: int,
    old_since: int | None,
    width: int = WIDE_COLUMNS,
) -> Table:
    if record.mean:
        return number_table_of(record, max(1, rows - FIGURE_LINES), old_since, width)
    table = table_of(record, rows, old_since, longest_of(collection.mechanism), width)
    if not record.values:
        table.caption, table.caption_justify = without_values(collection), "left"
    return table


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
    outage: Outage,
) -> None:
    def show_own(record: EstimateRecord) -> None:
        if record.collection == collection.name:
            show(record)

    cluster, topics = configuration.cluster, configuration.topics
    await latest.follow(cluster, topics.estimates, topics.partitions, show_own, outage)


def _print_line(record: EstimateRecord) -> None:
    write_line(encode_estimate(record))


def table_of(
    record: EstimateRecord,
    rows: int,
    old_since: int | None = None,
    longest: int | None = None,
    width: int = WIDE_COLUMNS,
) -> Table:
    """Build a table of the `rows` most frequent values with 95 % intervals; insignificant values are dim.

    Intervals "for all" hold all shares of the window at once. Texts that growing has found are marked as new
    in their first windows.

    Parameters
    ----------
    record : to show.
    rows : number of values to show.
    old_since : when the next estimate was due, unix seconds; None if it is not due yet.
    longest : bytes at which texts are cut, see `longest_of`: longer ones are marked with `...`.
    width : columns of the terminal; below WIDE_COLUMNS the intervals "for all" are left out.
    """
    table = _titled(record, old_since)
    _add_columns(table, "value", "share", width)
    places = _largest(record, rows)
    names, _ = name_column(record.values, places)
    marked = {place: name + _marks(record, place, longest) for place, name in names.items()}
    _add_shares(table, record, marked)
    if record.other is not None:
        low, high = record.other.low, record.other.high
        ends = "unknown" if low is None or high is None else f"{low:.2%} – {high:.2%}"
        table.add_row("(other)", f"{record.other.frequency:.2%}", ends, style="italic")
    if caption := caption_of(record):
        table.caption, table.caption_justify = escape(caption), "left"
    return table


def _largest(record: EstimateRecord, rows: int) -> list[int]:
    places: list[int] = np.argsort(-np.asarray(record.frequency), kind="stable")[:rows].tolist()
    return places


def _add_columns(table: Table, name: str, figure: str, width: int) -> None:
    table.add_column(name)
    for each in (figure, "95 % interval", *(["95 % for all"] if width >= WIDE_COLUMNS else []), "reports"):
        table.add_column(each, justify="right")


def _add_shares(table: Table, record: EstimateRecord, names: Mapping[int, str]) -> None:
    """Add a row for each place that is named, and one that counts the others."""
    for i, name in names.items():
        table.add_row(
            escape(name),
            f"{record.frequency[i]:.2%}",
            _interval(record, i),
            *([_interval_for_all(record, i)] if len(table.columns) > NARROW_CELLS else []),
            f"{record.count[i]:,.0f}",
            style="" if record.significant[i] else "dim",
        )
    if more := len(record.values) - len(names) + record.omitted:
        table.add_row(f"… {more} more")


def caption_of(record: EstimateRecord) -> str:
    """Say that counts contradict the parameters, whether fields are independent, or what a list lacks."""
    if wrong := contradictions(record.diagnostics):
        return wrong[0]
    if record.pair is not None:
        return _independence(record.pair)
    if incomplete := incomplete_list(record.diagnostics):
        return f"{incomplete}; deniable decode {record.collection} --candidates FILE tries other strings"
    return ""


def without_values(collection: Collection) -> str:
    """Say what to do instead of waiting for values of a collection that lists none."""
    name = collection.name
    if collection.growth is None:
        nothing = without_candidates(name)
        return f"{nothing}; with a section grow in the collection file, workers list what they find"
    return (
        f"no text is listed now; what growing finds is listed from the next window on; {search_of_past(name)}"
    )


def _independence(pair: PairRecord) -> str:
    first, second = (margin.name for margin in pair.margins)
    if pair.independence.degrees == 0:
        return f"too few reports to test whether {first} and {second} depend on each other"
    found = "depend on each other" if pair.independence.rejected else "may be independent"
    return f"{first} and {second} {found}: {p_value_text(pair.independence.p_value)}"


def _marks(record: EstimateRecord, place: int, longest: int | None) -> str:
    value, found = record.values[place], record.discovered_at
    is_cut = longest is not None and len(utf_8(value)) >= longest
    moment = found[place] if found else None
    new_until = None if moment is None else moment + NEW_WINDOWS * (record.window_end - record.window_start)
    is_new = new_until is not None and record.window_start < new_until
    return ("..." if is_cut else "") + (" (new)" if is_new else "")


def _interval(record: EstimateRecord, place: int) -> str:
    if record.unreliable and record.unreliable[place]:
        return "unreliable"
    return f"{record.low[place]:.2%} – {record.high[place]:.2%}"


def _interval_for_all(record: EstimateRecord, place: int) -> str:
    return f"{record.low_all[place]:.2%} – {record.high_all[place]:.2%}" if record.low_all else ""


def number_table_of(
    record: EstimateRecord, rows: int, old_since: int | None = None, width: int = WIDE_COLUMNS
) -> Table:
    """Build a table of the mean and the quantiles of a number, then of its rows, each with its interval.

    Where there are more than `rows`, those of the largest shares stay; see `table_of`.
    """
    table = _titled(record, old_since)
    _add_columns(table, "figure", "estimate", width)
    figures: dict[str, NumberMean | NumberQuantile] = {"mean": record.mean} if record.mean else {}
    figures |= {f"quantile {each.level:g}": each for each in record.quantiles}
    for name, figure in figures.items():
        table.add_row(name, f"{figure.value:.5g}", f"{figure.low:.5g} – {figure.high:.5g}")
    table.add_section()
    edges = [*record.values, f"{record.density.maximum:.10g}" if record.density else "…"]
    names = row_names(edges)
    _add_shares(table, record, {place: names[place] for place in sorted(_largest(record, rows))})
    if caption := caption_of(record):
        table.caption, table.caption_justify = escape(caption), "left"
    return table


def _titled(record: EstimateRecord, old_since: int | None) -> Table:
    state = "final" if record.final else "provisional"
    title = (
        f"{record.collection}: {number_of(record.reports, 'report', ',')}, {state}\n"
        f"window from {_utc(record.window_start)}"
    )
    if old_since is not None:
        title += f"\n[bold red]old since {_utc(old_since)}[/]"
    return Table(title=title, title_justify="left")


def _utc(unix_seconds: int) -> str:
    return f"{datetime.fromtimestamp(unix_seconds, UTC):%Y-%m-%d %H:%M:%SZ}"
