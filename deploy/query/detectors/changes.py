"""`deniable changes`: which shares changed, and intervals of the shares so far that hold at every look."""

from dataclasses import replace
from pathlib import Path

import click
import msgspec
import numpy as np

from aggregator.history.periods import Period, iso
from aggregator.history.rollup import WindowCoverage, coverage_of
from aggregator.history.share_changes import EPOCH_WINDOWS, ChangeMonitor, period_needed
from aggregator.history.share_sequences import ShareSequence, sequence_at
from aggregator.history.window_reader import check_room, read_windows
from aggregator.history.window_shares import shares_of_counts
from aggregator.records.share_change import CHANGE_ALARMS_A_YEAR, ShareChange
from deploy.cli.event_loop import run_until_signalled
from deploy.cli.options import NumberRange, config_option, servers_option
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import load
from deploy.offline.estimate_table import SHOWN, name_column, printable_name
from deploy.query.past_windows import coverage_lines, json_option
from deploy.query.period_options import period_asked, period_options
from estimators.mechanisms.square_wave import SquareWave


class ChangesAnswer(msgspec.Struct, frozen=True):
    """For programs: one JSON object.

    Parameters
    ----------
    rate : false alarms per year, at most, while no share changes.
    changes : by the time at which they were found, in the period.
    sequence : of the windows in the period; null if none has minimum_reports.
    """

    version: int
    collection: str
    fingerprint: str
    rate: float
    coverage: WindowCoverage
    changes: list[ShareChange]
    sequence: ShareSequence | None


@click.command()
@click.argument("collection")
@period_options
@click.option(
    "--rate",
    type=NumberRange(1e-6, 1000),
    default=CHANGE_ALARMS_A_YEAR,
    show_default=True,
    help="False alarms per year, at most, while no share changes. The worker's alert uses the default.",
)
@json_option
@config_option
@servers_option
def changes(
    collection: str,
    start: str | None,
    end: str | None,
    last: int | None,
    rate: float,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Find which shares changed in a period, since when, and by how much.

    Also print the share of each value among all reports of the period, with intervals that hold at every look
    while the period grows.

    Example: deniable changes carrier --last 7d
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    if isinstance(asked.mechanism, SquareWave):
        raise click.UsageError(
            f"changes needs a collection of values, got {collection}, whose mechanism is number: use compare "
            "or rollup"
        )
    period = period_asked(asked, start, end, last)
    needed = Period(min(period_needed(asked, period.start), period.start), period.end)
    try:
        check_room(asked, needed)
    except ValueError as error:
        raise click.UsageError(
            f"changes also reads the {EPOCH_WINDOWS} to {2 * EPOCH_WINDOWS - 1} windows before the period, "
            f"and {collection} has too many counters for that (cohorts, hash_functions or lengths): {error}, "
            "or use compare"
        ) from error
    cluster, topics = loaded.cluster, loaded.topics
    topic_setup.require_readable(cluster, topics, topics.windows)
    counts, joined = run_until_signalled(read_windows(cluster, topics, asked, needed))
    monitor = ChangeMonitor(asked, rate, epochs=None)
    windows = [shares for each, found in counts.items() if (shares := shares_of_counts(asked, each, found))]
    for each in windows:
        monitor.add(each)
    within = [each for each in windows if each.start >= period.start]
    joined = replace(
        joined,
        reports={each: number for each, number in joined.reports.items() if each >= period.start},
        incomplete=[each for each in joined.incomplete if each >= period.start],
    )
    answer = ChangesAnswer(
        version=1,
        collection=asked.name,
        fingerprint=f"{asked.fingerprint:016x}",
        rate=rate,
        coverage=coverage_of(asked, period, joined),
        changes=[each for each in monitor.update() if each.found > period.start],
        sequence=sequence_at(asked, within) if within else None,
    )
    if as_json:
        click.echo(msgspec.json.encode(answer))
        return
    for line in coverage_lines(asked, answer.coverage):
        click.echo(line, err=True)
    click.echo("\n".join([*_change_lines(answer), *_sequence_lines(answer.sequence)]))


def _change_lines(answer: ChangesAnswer) -> list[str]:
    said = f"at most {answer.rate:g} false alarms a year"
    if not answer.changes:
        return [f"no share changed ({said})"]
    return [f"{len(answer.changes)} changes ({said}):"] + [
        f"  {printable_name(each.value)}: {each.before:.4f} to {each.after:.4f} since {iso(each.since)}, by "
        f"{each.change:+.4f} ({each.low:+.4f} to {each.high:+.4f}), found {iso(each.found)}"
        for each in answer.changes
    ]


def _sequence_lines(sequence: ShareSequence | None) -> list[str]:
    """Return a table for people, the largest shares first."""
    if sequence is None:
        return ["no window has minimum_reports: there are no intervals"]
    lines = [
        f"{sequence.reports} reports of {sequence.windows} windows; 95 % intervals at every look",
        "left: of each value; right: of all values at once",
    ]
    if sequence.repeated_noise:
        lines.append("they hold whatever the windows have in common, as clients may return")
    order = np.argsort(-np.asarray(sequence.share), kind="stable")[:SHOWN].tolist()
    names, width = name_column(sequence.values, order)
    lines.append(f"{'value':<{width}} {'share':>10} {'low':>9} {'high':>9} {'low':>9} {'high':>9}")
    columns = (sequence.low, sequence.high, sequence.low_all, sequence.high_all)
    for place in order:
        ends = " ".join(f"{column[place]:>9.6f}" for column in columns)
        lines.append(f"{names[place]:<{width}} {sequence.share[place]:>10.6f} {ends}")
    if len(sequence.values) > SHOWN:
        lines.append(f"and {len(sequence.values) - SHOWN} more; --json shows all")
    return lines
