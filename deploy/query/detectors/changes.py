"""`deniable changes`: which shares changed, and intervals of the shares so far that hold at every look."""

from collections.abc import Mapping
from pathlib import Path

import click
import msgspec

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.share_changes import EPOCH_WINDOWS, period_needed
from deniable.aggregator.history.window_reader import most_windows, read_windows
from deniable.analysis.periods import check_room
from deniable.analysis.share_history import ChangesAnswer, changes_in
from deniable.cluster.topics import checks as topic_checks
from deniable.config.entries import CHANGE_ALARMS
from deniable.config.file import load
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import NumberRange, config_option, servers_option
from deniable.deploy.offline.estimate_table import contradictions
from deniable.deploy.query.detectors.change_lines import change_lines, mean_lines, share_lines
from deniable.deploy.query.past_windows import json_option, print_coverage
from deniable.deploy.query.period_options import period_asked, period_options
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import FIT


@click.command()
@click.argument("collection")
@period_options
@click.option(
    "--rate",
    type=NumberRange(*CHANGE_ALARMS),
    default=None,
    help="False alarms per year, at most, while no share changes; as in the collection file unless given.",
)
@json_option
@config_option
@servers_option
def changes(
    collection: str,
    start: str | None,
    end: str | None,
    last: int | None,
    rate: float | None,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Find which shares, or which mean, changed in a period, since when, and by how much.

    Also print the share of each value among all reports of the period, or the mean of the numbers, with
    intervals that hold at every look while the period grows.

    Example: deniable changes carrier --last 7d
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    if not (asked.number is not None or asked.entries):
        raise click.UsageError(
            f"{asked.name} has no candidates, so no shares are estimated: deniable decode {asked.name} "
            "--grow, for each of two periods, shows which texts were frequent then"
        )
    rate = asked.change_alarms_a_year if rate is None else rate
    period = period_asked(asked, start, end, last)
    needed = Period(min(period_needed(asked, period.start), period.start), period.end)
    before = f"{EPOCH_WINDOWS} to {2 * EPOCH_WINDOWS - 1} windows before it"
    if most_windows(asked) < 2 * EPOCH_WINDOWS:
        raise click.UsageError(
            f"changes also reads the {EPOCH_WINDOWS} to {2 * EPOCH_WINDOWS - 1} windows before the period, "
            f"and at most {most_windows(asked)} windows of {asked.name} fit into memory, each with "
            f"{asked.cohorts * asked.width:,} counters: use compare"
        )
    check_room(asked, needed, reads=f"the period and the {before}", remedy=", or use compare")
    cluster, topics = loaded.cluster, loaded.topics
    silence_clients()
    topic_checks.require_readable(cluster, topics, topics.windows)
    counts, joined = run_until_signalled(read_windows(cluster, topics, asked, needed))
    answer, newest = changes_in(asked, period, counts, joined, rate)
    if as_json:
        click.echo(msgspec.json.encode(answer))
        return
    print_coverage(asked, answer.coverage)
    click.echo("\n".join(lines_of(asked, answer, newest)))


def lines_of(collection: Collection, answer: ChangesAnswer, newest: Mapping[str, float]) -> list[str]:
    """Return what is printed for people; `newest` is as of `change_lines`."""
    is_number = collection.number is not None
    return [
        *contradictions({FIT: answer.fit_p_value}),
        *change_lines(collection, answer.changes, answer.rate, newest),
        *(mean_lines if is_number else share_lines)(answer.sequence),
    ]
