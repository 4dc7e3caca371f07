"""`deniable inspect`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from deniable.aggregator.records import estimate_schema
from deniable.cluster.reading.partition_reader import KafkaRecord
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration, load
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.line_output import end_with_the_reader, write_line
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.query.inspection.records import READERS, fields_of, line_of
from deniable.deploy.query.inspection.rows import Inspection
from deniable.deploy.query.inspection.topic import OffsetRange, Show, read_topic

MOST_TAIL = 1_000_000
UNCOMMITTED = ("reports", "uploads")  # what aborted transactions wrote there counts, too


@click.command()
@click.argument("topic", type=click.Choice(list(READERS)))
@click.option("--partition", type=click.IntRange(min=0), help="This partition alone.")
@click.option("--offset", type=click.IntRange(min=0), help="Begin at this offset in each partition.")
@click.option(
    "--tail", type=click.IntRange(1, MOST_TAIL), metavar="N", help="Begin with the last N records of each."
)
@click.option("--follow", is_flag=True, help="Wait for more at the end.")
@click.option(
    "--payload", is_flag=True, help="Also print the content of reports, uploads, counters and columns."
)
@click.option("--json", "is_json", is_flag=True, help="Print JSON lines on a terminal, too.")
@click.option("--schema", is_flag=True, help="Print the JSON Schema of estimates instead; does not connect.")
@config_option
@servers_option
def inspect(
    topic: str,
    partition: int | None,
    offset: int | None,
    tail: int | None,
    follow: bool,
    payload: bool,
    is_json: bool,
    schema: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Print the records of a topic, decoded, a line each; JSON lines if stdout is not a terminal.

    For a record that is damaged or from another program, the line has its place and what is wrong with it.

    Example: deniable inspect rejected --tail 10
    """
    if schema:
        _print_schema(topic)
        return
    if offset is not None and tail is not None:
        raise click.UsageError("give either --offset or --tail")
    loaded = load(config, bootstrap_servers)
    silence_clients()
    name = loaded.topics.prefix + topic
    number = topic_checks.partitions_of(loaded.cluster, loaded.topics, name)
    if partition is not None and partition >= number:
        raise click.UsageError(f"--partition must be in [0, {number - 1}], got {partition}")
    partitions = range(number) if partition is None else [partition]
    inspection = Inspection(loaded.by_fingerprint(), payload)
    show = _printer(topic, inspection, is_json=is_json or not sys.stdout.isatty())
    run_until_signalled(_read(loaded, topic, partitions, OffsetRange(offset, tail, follow), show))


def _print_schema(topic: str) -> None:
    if topic != "estimates":
        raise click.UsageError(f"--schema is for the topic estimates, got {topic}")
    click.echo(estimate_schema.text(), nl=False)


def _printer(topic: str, inspection: Inspection, *, is_json: bool) -> Show:
    def show(partition: int, record: KafkaRecord) -> None:
        fields = fields_of(topic, inspection, partition, record)
        write_line(json.dumps(fields) if is_json else line_of(fields))

    return show


async def _read(
    loaded: Configuration, topic: str, partitions: Sequence[int], span: OffsetRange, show: Show
) -> None:
    if not sys.stdout.isatty():
        end_with_the_reader()
    cluster, name = loaded.cluster, loaded.topics.prefix + topic
    committed = topic not in UNCOMMITTED
    if not await read_topic(cluster, name, partitions, span, committed=committed, show=show):
        click.echo(f"topic {name} has no records there", err=True)
