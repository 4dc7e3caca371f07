"""Windows of the past for a command: which period, what was joined, and what that lacks, in words."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import click
import msgspec

from aggregator.history.periods import Period, iso, period_of
from aggregator.history.rollup import WindowCoverage, coverage_of, record_of, roll_up
from aggregator.history.window_reader import Joined, join_windows
from deploy.cli.event_loop import run_until_told
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import Configuration
from deploy.offline.estimate_table import roll_up_table
from estimators.collection import Collection
from estimators.rollup import RollUp

SPANS_TOLD = 5

from_option = click.option(
    "--from",
    "start",
    required=True,
    metavar="TIME",
    help="ISO 8601 with its zone, such as 2026-01-31T00:00:00Z, or unix seconds such as 1769817600.",
)
to_option = click.option(
    "--to", "end", metavar="TIME", help="As --from; windows that end later are left out. Default: now."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")


@dataclass(frozen=True)
class Past:
    """The joined windows of a collection.

    Parameters
    ----------
    collection : whose.
    coverage : which windows they are.
    joined : their counts.
    """

    collection: Collection
    coverage: WindowCoverage
    joined: Joined

    def roll_up(self) -> RollUp | None:
        """Estimate over all of them; None when there are too few reports. ClickException tells a failure."""
        try:
            return roll_up(self.collection, self.joined)
        except (ValueError, ArithmeticError) as error:
            raise click.ClickException(f"no estimate fits the counts: {error}") from error

    def answer(self, names: Sequence[str], name: str, *, as_json: bool) -> None:
        """Print the roll-up: one record for programs, or what was joined and a table for people.

        Parameters
        ----------
        names : of the frequencies, in their order; `name` heads them.
        as_json : True for the record, with all values.

        Raises
        ------
        click.ClickException if there are too few reports, after the record, or no estimate fits the counts.
        """
        result = self.roll_up()
        if as_json:
            record = record_of(self.collection, self.coverage, self.joined, result, whole=True)
            click.echo(msgspec.json.encode(record))
        else:
            self.tell()
        if result is None:
            raise self._too_few()
        if not as_json:
            click.echo(roll_up_table(names, result, name))

    def _too_few(self) -> click.ClickException:
        return click.ClickException(
            f"{self.coverage.windows} windows of {self.collection.name} were joined, with "
            f"{self.joined.counts.reports} reports: there is an estimate from minimum_reports = "
            f"{self.collection.minimum_reports} on; give a longer period"
        )

    def tell(self) -> None:
        """Say on stderr which windows were joined, and which not."""
        for line in coverage_lines(self.collection, self.coverage):
            click.echo(line, err=True)


def past_of(configuration: Configuration, collection: Collection, start: str, end: str | None) -> Past:
    """Join the windows that lie whole between two moments, the second one now if it is not given.

    Raises
    ------
    click.UsageError if these are no moments, or hold no window; TopicSetupError, KafkaError, TimeoutError.
    """
    period = period_asked(collection, start, end)
    cluster, topics = configuration.cluster, configuration.topics
    topic_setup.require_readable(cluster, topics, topics.windows)
    joined = run_until_told(join_windows(cluster, topics, collection, period))
    return Past(collection, coverage_of(collection, period, joined), joined)


def period_asked(collection: Collection, start: str, end: str | None) -> Period:
    """The span between two moments; click.UsageError if these are no moments, or hold no window."""
    try:
        period = period_of(start, end or iso(int(time.time())))
        if not period.windows(collection.window_seconds):
            raise ValueError(
                f"from and to must hold at least 1 whole window of {collection.window_seconds} s, got 0"
            )
    except ValueError as error:
        raise click.UsageError(f"--{error}") from error
    return period


def coverage_lines(collection: Collection, coverage: WindowCoverage) -> list[str]:
    """Which windows were joined, and which not, in sentences."""
    period = Period(coverage.start, coverage.end)
    lines = [
        f"{collection.name}: {coverage.windows} of {coverage.expected} windows of "
        f"{collection.window_seconds} s joined, {period}"
    ]
    if coverage.missing:
        why = "no reports, not final yet, lost, or older than the topic keeps"
        lines.append(f"missing ({why}): {_spans(coverage.missing)}")
    if coverage.incomplete:
        lines.append(f"incomplete (their first pages are deleted): {_spans(coverage.incomplete)}")
    lines += [
        f"{windows} windows under other parameters (fingerprint {fingerprint}) passed over: counts of "
        f"different meaning cannot be added"
        for fingerprint, windows in coverage.passed_over.items()
    ]
    if coverage.foreign:
        lines.append(f"{coverage.foreign} records of the windows topic are none of this version: passed over")
    return lines


def _spans(spans: Sequence[Period]) -> str:
    told = ", ".join(map(str, spans[:SPANS_TOLD]))
    return told if len(spans) <= SPANS_TOLD else f"{told}, and {len(spans) - SPANS_TOLD} more spans"
