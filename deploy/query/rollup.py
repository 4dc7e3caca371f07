"""`deniable rollup`."""

import reprlib
from pathlib import Path
from typing import Any

import click
import msgspec

from deniable.aggregator.history.periods import iso
from deniable.aggregator.history.rollup import coverage_of, record_of
from deniable.analysis.changes.joined_history import Definition, JoinedHistoryRecord, join_history
from deniable.analysis.functions import roll_ups as functions
from deniable.analysis.functions.roll_ups import Edges
from deniable.analysis.roll_up import estimated, rollup_table
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.config.file import load
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.offline.estimate_table import (
    contradictions,
    row_names,
    shown_share,
)
from deniable.deploy.query.past_windows import (
    all_values_option,
    check_all_values,
    joined_of,
    json_option,
    lines_of_gaps,
    print_roll_up,
)
from deniable.deploy.query.period_options import period_asked, period_options
from deniable.deploy.query.value_rows import rows_of
from deniable.estimators.mechanisms.directed_rounding import rounded_up_short
from deniable.protocol.words import number_of


class EdgeList(click.ParamType):
    """Numbers with commas between, or `log`."""

    name = "NUMBERS|log"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Edges:
        """Return the numbers, or `log`."""
        if value == functions.LOG:
            return "log"
        try:
            return [float(each) for each in str(value).split(",")]
        except ValueError:
            self.fail(
                f"must be numbers with commas between, such as 0,1,2,5,10, or log, got "
                f"{reprlib.repr(str(value))}",
                parameter,
                context,
            )


@click.command()
@click.argument("collection")
@period_options
@click.option(
    "--former",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    multiple=True,
    metavar="FILE",
    help="Collection file of before a change of values or epsilon: join the estimates under it and under the "
    "present file by inverse variance, where values agree. May be repeated.",
)
@click.option(
    "--density",
    is_flag=True,
    help="Of a number, print the smooth density instead: the shares of its fine steps, without intervals.",
)
@click.option(
    "--edges",
    type=EdgeList(),
    help="Of a number, edges of the rows, each with the interval of its own share: boundaries of its steps, "
    "such as 0,1,2,5,10; or log, for skewed numbers: rows that grow twofold from one step on.",
)
@all_values_option
@json_option
@config_option
@servers_option
def rollup(
    collection: str,
    start: str | None,
    end: str | None,
    last: int | None,
    former: tuple[Path, ...],
    density: bool,
    edges: Edges | None,
    for_all: bool,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Estimate over a period, the last day by default: join its final windows.

    The intervals hold for one look; those of deniable changes hold at every look while the period grows.

    Example: deniable rollup carrier --last 7d
    """
    check_all_values(for_all=for_all, as_json=as_json)
    if for_all and former:
        raise click.UsageError(
            "--all-values does not go with --former: estimates that are joined by inverse variance have "
            "intervals of single values only"
        )
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    if density and (former or as_json or asked.number is None):
        raise click.UsageError(
            "--density needs a collection with mechanism number, and goes neither with --former nor "
            f"with --json, whose independent.density it is; {collection} has mechanism {asked.mechanism.name}"
        )
    if edges is not None:
        if former or density:
            raise click.UsageError(
                "--edges goes neither with --former, which joins the mean of a number alone, nor with "
                "--density, whose steps are all of one width"
            )
        asked = functions.with_edges(asked, edges)
    period = period_asked(asked, start, end, last)
    if not former:
        joined = joined_of(loaded, asked, period)
        if density:
            coverage, result = coverage_of(asked, period, joined), estimated(asked, joined)
            table = rollup_table(record_of(asked, coverage, joined, result, whole=True), other=False)
            click.echo(_density(table.density()))
            return
        names = [*asked.labels(), *(["(other)"] if asked.other else [])]
        if (number := asked.number) is not None:
            names = row_names(number.row_bounds)
        print_roll_up(asked, period, joined, names, "value", as_json=as_json, for_all=for_all)
        return
    present, *earlier = [
        Definition(each, joined_of(loaded, each, period)) for each in functions.definitions_of(asked, former)
    ]
    record = join_history(present, earlier, period)
    if as_json:
        click.echo(msgspec.json.encode(record))
        return
    for line in (*lines_of_parts(record), *lines_of_gaps(record.coverage)):
        click.echo(line, err=True)
    click.echo("\n".join(_lines(record)))


def _density(table: ArrowTable) -> str:
    rows = zip(*(table[name].to_pylist() for name in ("lower", "upper", "share")), strict=True)
    lines = [f"{lower:>12.6g} {upper:>12.6g} {share:>10.6f}" for lower, upper, share in rows]
    head = f"{'from':>12} {'to':>12} {'share':>10}"
    return "\n".join(["density: a smooth estimate, without intervals", head, *lines])


def lines_of_parts(record: JoinedHistoryRecord) -> list[str]:
    """Say for people which windows were joined, where parameters changed, and what is not comparable."""
    lines = [
        f"{record.collection}: {number_of(len(record.parts), 'definition')}, {iso(record.start)} to "
        f"{iso(record.end)}"
    ]
    for part in record.parts:
        lines.append(
            f"{iso(part.start)} to {iso(part.end)}: {number_of(part.windows, 'window', ',')}, "
            f"{number_of(part.reports, 'report', ',')}, "
            f"{part.mechanism}, epsilon {rounded_up_short(part.epsilon)} (fingerprint {part.fingerprint})"
        )
        if part.change:
            lines.append(f"  changed since: {part.change}")
        if part.not_joined:
            lines.append(f"  not comparable, not joined: {part.not_joined}")
    lines += [
        f"{number_of(windows, 'window')} with other parameters (fingerprint {fingerprint}) skipped: give the "
        "collection file that they were counted under as --former, too"
        for fingerprint, windows in record.passed_over.items()
    ]
    return lines


def _lines(record: JoinedHistoryRecord) -> list[str]:
    """Return a table for people, and below it the parts whose counts contradict their parameters."""
    wrong = [
        f"{iso(part.start)} to {iso(part.end)}: {line}"
        for part in record.parts
        for line in contradictions(part.diagnostics)
    ]
    return [*_shares(record), *wrong]


def _shares(record: JoinedHistoryRecord) -> list[str]:
    """Return the largest shares first; of a number its mean."""
    lines = [
        f"{number_of(record.reports, 'report')}, joined by inverse variance, 95 % intervals, * significant",
        "left: if every report comes from another client; right: whatever the windows have in common; # the",
        "parts differ in this share by more than noise explains",
    ]
    if record.mean is not None:
        mean = record.mean
        return [lines[0], f"mean: {mean.value:.6g}, from {mean.low:.6g} to {mean.high:.6g}"]

    def figures(place: int) -> str:
        columns = (record.low, record.high, record.shared_low, record.shared_high)
        ends = " ".join(f"{column[place]:>9.6f}" for column in columns)
        marks = f"{'*' if record.significant[place] else ' '}{'#' if record.differs[place] else ''}"
        parts, share = record.parts_of_value[place], shown_share(record.share[place])
        return f"{parts:>5} {share:>10.6f} {ends} {marks}"

    order = sorted(range(len(record.values)), key=lambda place: -record.share[place])
    heads = f"{'parts':>5} {'share':>10} {'low':>9} {'high':>9} {'low':>9} {'high':>9}"
    return [*lines, *rows_of(record.values, order, heads, figures)]
