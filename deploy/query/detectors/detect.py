"""`deniable detect`: test whether past windows and packs look forged."""

from pathlib import Path

import click
import msgspec

from deniable.aggregator.history.forgery_detection import (
    DetectorFinding,
    ScoredWindow,
    finding,
    judge_pack,
    judge_windows,
)
from deniable.aggregator.history.periods import iso
from deniable.aggregator.history.rollup import WindowCoverage, coverage_of
from deniable.aggregator.history.window_reader import read_windows
from deniable.analysis.periods import check_room
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration, load
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import NumberRange, config_option, servers_option
from deniable.deploy.offline.estimate_table import printable_name
from deniable.deploy.query.inspection.command import MOST_TAIL
from deniable.deploy.query.inspection.topic import OffsetRange, read_topic
from deniable.deploy.query.past_windows import json_option, print_coverage
from deniable.deploy.query.period_options import period_asked, period_options
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.mechanism import bits_of
from deniable.protocol import wire
from deniable.protocol.words import number_of

ALARMS_SHOWN = 5
LEAST_PERCENT, LEAST_CHANCE = 0.01, 1e-12
SAID = {
    "cohorts": "clients are spread unevenly over cohorts",
    "functions": "hash functions are drawn unevenly",
    "impossible": "no true values explain the counts",
    "change": "the distribution differs from the window before",
    "popcounts": "reports with too few or too many ones",
}


class DetectAnswer(msgspec.Struct, frozen=True):
    """For programs: one JSON object."""

    version: int
    collection: str
    fingerprint: str
    rate: float
    coverage: WindowCoverage
    findings: list[DetectorFinding]


@click.command()
@click.argument("collection")
@period_options
@click.option(
    "--reports",
    "packs",
    type=click.IntRange(1, MOST_TAIL),
    metavar="N",
    help="Also test the newest N packs of each partition, whatever their window (RAPPOR only).",
)
@click.option(
    "--rate",
    type=NumberRange(1e-9, 0.5),
    default=0.001,
    show_default=True,
    help="Share of runs in which a detector may raise an alarm on honest reports.",
)
@json_option
@config_option
@servers_option
def detect(
    collection: str,
    start: str | None,
    end: str | None,
    last: int | None,
    packs: int | None,
    rate: float,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> int:
    """Look for forged reports in the final windows of a period; exit status 1 on an alarm.

    Nobody can detect forged reports that follow the randomizer: docs/poisoning.md says what can be detected.

    Example: deniable detect place --last 1d --reports 1000
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    if packs is not None and bits_of(asked.mechanism) is None:
        raise click.UsageError(
            f"--reports is for RAPPOR, and {collection} uses {asked.mechanism.name}: leave it out"
        )
    period = period_asked(asked, start, end, last)
    check_room(asked, period)
    cluster, topics = loaded.cluster, loaded.topics
    silence_clients()
    topic_checks.require_readable(cluster, topics, topics.windows)
    partitions = 0 if packs is None else topic_checks.partitions_of(cluster, topics, topics.reports)
    windows, joined = run_until_signalled(read_windows(cluster, topics, asked, period))
    findings = list(judge_windows(asked, windows, rate))
    if packs is not None:
        findings.append(finding("popcounts", _packs(loaded, asked, packs, partitions), rate))
    coverage = coverage_of(asked, period, joined)
    if as_json:
        fingerprint = f"{asked.fingerprint:016x}"
        answer = DetectAnswer(1, asked.name, fingerprint, rate, coverage, findings)
        click.echo(msgspec.json.encode(answer))
    else:
        print_coverage(asked, coverage)
        for found in findings:
            _print_finding(found)
    _warn(loaded, asked)
    return 1 if any(found.alarms for found in findings) else 0


def _warn(loaded: Configuration, collection: Collection) -> None:
    per_window = {each.collection: each.reports_per_window for each in loaded.allowances}[collection]
    if per_window > 1:
        click.echo(
            f"warning: {collection.name} allows {per_window} reports a client and window; if clients send "
            "more than one, honest reports raise more alarms than stated",
            err=True,
        )


def _packs(loaded: Configuration, collection: Collection, packs: int, partitions: int) -> list[ScoredWindow]:
    """Return the newest packs of each partition, as producers sent them, counted or not."""
    judged: list[ScoredWindow] = []

    def take(partition: int, record: KafkaRecord) -> None:
        try:
            p_value = judge_pack(collection, wire.decode(record.value))
        except wire.WireError:
            return
        if p_value is not None:
            judged.append(ScoredWindow({"partition": partition, "offset": record.offset}, p_value))

    cluster, name = loaded.cluster, loaded.topics.reports
    run_until_signalled(
        read_topic(cluster, name, range(partitions), OffsetRange(tail=packs), committed=False, show=take)
    )
    return judged


def _print_finding(found: DetectorFinding) -> None:
    thing = "pack" if found.detector == "popcounts" else "window"
    click.echo(
        f"{found.detector}: {len(found.alarms)} of {number_of(found.judged, thing)} alarm "
        f"({SAID[found.detector]}); honest reports look like this in {chance(found.p_value)} runs"
    )
    for alarm in found.alarms[:ALARMS_SHOWN]:
        place = {name: value for name, value in alarm.items() if name != "p_value"}
        shown = " ".join(f"{name}={_shown(name, value)}" for name, value in place.items())
        click.echo(f"  {shown}: {chance(float(alarm['p_value']))}")
    if len(found.alarms) > ALARMS_SHOWN:
        click.echo(f"  and {len(found.alarms) - ALARMS_SHOWN} more; --json shows all")


def chance(p_value: float) -> str:
    """Write a p-value, in [0, 1], as the share of runs in which honest reports look at least as strange."""
    if p_value >= LEAST_PERCENT:
        return f"{100 * p_value:.0f} % of"
    if p_value < LEAST_CHANCE:
        return "less than 1 of 10^12"
    return f"1 of {float(f'{1 / p_value:.2g}'):,.0f}"


def _shown(name: str, value: int | str | float) -> str:
    """Escape a value's name, which must not control the terminal."""
    if name == "window_start" and isinstance(value, int):
        return iso(value)
    if isinstance(value, str):
        return printable_name(value)
    return f"{value:.2g}" if isinstance(value, float) else str(value)
