"""Past windows for a command: join those of a period, and say which are missing."""

from collections.abc import Sequence

import click
import msgspec

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import WindowCoverage, coverage_of, record_of, too_few_reports
from deniable.aggregator.history.window_reader import Joined, join_windows
from deniable.analysis.errors import AnalysisError
from deniable.analysis.roll_up import fitted
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.offline.estimate_table import roll_up_table
from deniable.estimators.collection import Collection
from deniable.protocol.words import number_of

SPANS_SHOWN = 5

all_values_option = click.option(
    "--all-values",
    "for_all",
    is_flag=True,
    help="Intervals that hold for all values at once, in place of those of single values.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")


def check_all_values(*, for_all: bool, as_json: bool) -> None:
    """Refuse `--all-values` with `--json`; click.UsageError."""
    if for_all and as_json:
        raise click.UsageError(
            "--all-values chooses the intervals of the table; --json has both: low and high, low_all and "
            "high_all"
        )


def joined_of(configuration: Configuration, collection: Collection, period: Period) -> Joined:
    """Join the windows that are wholly in a period.

    Raises
    ------
    TopicSetupError, KafkaError, TimeoutError.
    """
    cluster, topics = configuration.cluster, configuration.topics
    silence_clients()
    topic_checks.require_readable(cluster, topics, topics.windows)
    return run_until_signalled(join_windows(cluster, topics, collection, period))


def print_roll_up(
    collection: Collection,
    period: Period,
    joined: Joined,
    names: Sequence[str],
    name: str,
    *,
    as_json: bool,
    for_all: bool,
) -> None:
    """Print a roll-up: one record for programs, or what was joined and a table for people.

    Parameters
    ----------
    collection, period, joined : the windows, and the definition to estimate under.
    names : of the frequencies, in order; `name` is their heading.
    as_json : True for the record, with all values.
    for_all : whether the intervals of the table hold for all values at once; the record has both.

    Raises
    ------
    AnalysisError if there are too few reports, after the record, or no estimate fits the counts.
    """
    result, coverage = fitted(collection, joined), coverage_of(collection, period, joined)
    if as_json:
        click.echo(msgspec.json.encode(record_of(collection, coverage, joined, result, whole=True)))
    else:
        print_coverage(collection, coverage)
    if result is None:
        raise AnalysisError(too_few_reports(collection, joined))
    if not as_json:
        reports = joined.counts.reports
        click.echo(roll_up_table(names, result, name, reports, collection.name, for_all=for_all))


def print_coverage(collection: Collection, coverage: WindowCoverage) -> None:
    """Print on stderr which windows were joined, and which not."""
    click.echo("\n".join(coverage_lines(collection, coverage)), err=True)


def coverage_lines(collection: Collection, coverage: WindowCoverage) -> list[str]:
    """Say in sentences which windows were joined, and which not."""
    period = Period(coverage.start, coverage.end)
    lines = [
        f"{collection.name}: {coverage.windows} of {number_of(coverage.expected, 'window')} of "
        f"{collection.window_seconds} s joined, {period}"
    ]
    lines += lines_of_gaps(coverage)
    lines += [
        f"{number_of(windows, 'window')} with other parameters (fingerprint {fingerprint}) skipped: their "
        "counts cannot be added; deniable rollup --former FILE joins their estimates"
        for fingerprint, windows in coverage.passed_over.items()
    ]
    if coverage.foreign:
        foreign = number_of(coverage.foreign, "record")
        lines.append(f"skipped {foreign} of the windows topic, not of this version")
    return lines


def lines_of_gaps(coverage: WindowCoverage) -> list[str]:
    """Say in sentences which windows are missing or incomplete."""
    lines = []
    if coverage.missing:
        elsewhere = ", older than the topic's retention, or only under other parameters"
        here = elsewhere if coverage.passed_over else ", or older than the topic's retention"
        why = f"no reports, not final yet, lost{here}"
        lines.append(f"missing ({why}): {_spans(coverage.missing)}")
    if coverage.incomplete:
        lines.append(f"incomplete (their first pages are deleted): {_spans(coverage.incomplete)}")
    return lines


def _spans(spans: Sequence[Period]) -> str:
    shown = ", ".join(map(str, spans[:SPANS_SHOWN]))
    return shown if len(spans) <= SPANS_SHOWN else f"{shown}, and {len(spans) - SPANS_SHOWN} more spans"
