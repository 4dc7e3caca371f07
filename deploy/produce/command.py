"""`deniable produce`."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import click

from deniable.config.file import load
from deniable.deploy.cli.options import (
    Folder,
    config_option,
    metrics_listen_option,
    metrics_port_option,
    servers_option,
)
from deniable.deploy.produce.checks import (
    check_budget_store,
    check_destination,
    check_option,
    check_own_clients,
)
from deniable.deploy.produce.input.batches import BATCH_LINES, InputBatches
from deniable.deploy.produce.input.inputs import InputParameter, Inputs, is_file
from deniable.deploy.produce.input.resume import ResumePoints
from deniable.deploy.produce.input.values import takes_several, takes_two, value_reader
from deniable.deploy.produce.run import run_produce
from deniable.deploy.produce.timing import DEFAULT
from deniable.deploy.produce.unknown_values import UnknownValues
from deniable.estimators.collection import Collection
from deniable.producers.config import ProducerConfig
from deniable.producers.from_file import producer_config
from deniable.producers.responders.batch import PART_BYTES, QUEUED_BYTES
from deniable.protocol.secrets.secret import secret_of
from deniable.protocol.wire import mechanism_number, report_bytes

SHOWN = {"--clients": "a cohort and limits of each client", "--time-field": "the window of each event"}


@click.command()
@click.argument("collection")
@click.option(
    "--input",
    "stream",
    type=InputParameter(),
    default="-",
    show_default=True,
    help="A file in UTF-8, or - for stdin. Runs on stdin or a pipe cannot be resumed.",
)
@click.option("--follow", is_flag=True, help="Wait for more lines at the end of the file, as tail -F does.")
@click.option(
    "--format",
    "layout",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="csv, whose first line names the columns, or jsonl, an object a line.",
)
@click.option("--field", required=True, metavar="NAME", help="Column or field that holds the value.")
@click.option(
    "--second-field",
    metavar="NAME",
    help="Column or field that holds the value of a pair's second field; --field holds that of the first.",
)
@click.option("--clients", metavar="NAME", help="Column or field that holds the client's id.")
@click.option(
    "--time-field",
    metavar="NAME",
    help="Column or field with the time of the event: unix seconds, or ISO 8601, UTC where it names no zone. "
    "Reports later than the grace do not count.  [default: when the line is read]",
)
@click.option("--no-clients", is_flag=True, help="Every line is a different client: no client limits apply.")
@click.option(
    "--strict",
    is_flag=True,
    help="Stop at a bad line instead of skipping it, and before anything is sent if most of the first values "
    "are unknown; so whether anything is sent depends on values.",
)
@click.option(
    "--show-unknown/--hide-unknown",
    "shows_unknown",
    default=None,
    help="Say on stderr in coarse words how many values the collection does not list.  [default: only if "
    "stderr is a terminal]",
)
@click.option(
    "--data-dir",
    type=Folder(),
    help="Folder of secret, budgets and outbox, which processes may share; overrides the collection file.",
)
@metrics_port_option
@metrics_listen_option
@config_option
@servers_option
def produce(
    collection: str,
    stream: BinaryIO,
    follow: bool,
    layout: str,
    field: str,
    second_field: str | None,
    clients: str | None,
    time_field: str | None,
    no_clients: bool,
    strict: bool,
    shows_unknown: bool | None,
    data_dir: Path | None,
    metrics_port: int | None,
    metrics_listen: tuple[str, int] | None,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Randomize values from a file or stdin and send the reports; nothing else leaves.

    After a kill, or if Kafka stays away, the same command resumes where the run ended and sends no line
    twice; after a complete run, it sends the file again. While Kafka is away, reports are kept; the exit
    status is 1 if it does not return within a minute of the end. Reports refused by client limits, and lines
    without a client or time, are counted and listed at the end. A line that a value may have broken stops the
    run with its number: mend it, and the same command resumes there.

    Example: deniable produce carrier --input f.csv --field carrier --no-clients
    """
    if (clients is None) != no_clients:
        raise click.UsageError(
            "give either --clients NAME, or --no-clients if every line is a different client"
        )
    if follow and not is_file(stream):
        raise click.UsageError(
            "--follow needs --input with a regular file; stdin and pipes are read as lines arrive, without it"
        )
    loaded = load(config, bootstrap_servers)
    check_option(loaded, bootstrap_servers)
    asked = loaded.collection(collection)
    if asked.canary:
        raise click.UsageError(
            f"{collection} is a canary, whose values are random: use deniable canary {collection}"
        )
    if layout == "csv" and takes_several(asked):
        raise click.UsageError(f"a value of {collection} is a list of texts: give JSON lines, --format jsonl")
    if takes_two(asked) != (second_field is not None):
        names = " and ".join(each.name for each in asked.fields)
        raise click.UsageError(
            f"{collection} is a pair of {names}: name the columns of both, --field and --second-field"
            if second_field is None
            else f"{collection} is no pair of fields: it takes no --second-field"
        )
    check_value_fields([field, second_field], {"--clients": clients, "--time-field": time_field})
    if second_field == field:
        first, second = (each.name for each in asked.fields)
        raise click.UsageError(
            f"--field and --second-field must name different columns, of {first} and of {second}, got "
            f"'{field}' for both"
        )
    settings = producer_config(loaded, [asked], data_dir=data_dir, block_milliseconds=1000 * DEFAULT.wait)
    if no_clients:
        check_own_clients(settings)
    else:
        check_budget_store(settings)
    check_destination(loaded, asked, settings.data_dir)
    read = field if second_field is None else f"{field}, {second_field}"
    progress = _progress(settings, asked, read, Path(stream.name)) if is_file(stream) else None
    run_produce(
        settings,
        Inputs(stream, progress, follow=follow),
        InputBatches(
            layout,
            field,
            clients,
            value_reader(asked, layout),
            strict,
            _batch_lines(settings, asked),
            time_field=time_field,
            second_field=second_field,
        ),
        metrics_port=metrics_port,
        metrics_listen=metrics_listen,
        unknown=UnknownValues(
            asked,
            field,
            second_field,
            is_shown=sys.stderr.isatty() if shows_unknown is None else shows_unknown,
            is_strict=strict,
        ),
    )


def check_value_fields(values: Sequence[str | None], others: Mapping[str, str | None]) -> None:
    """Raise UsageError if an option whose field shows in what is sent names the field of a value."""
    for option, name in others.items():
        if name is not None and name in values:
            raise click.UsageError(
                f"{option} must name another field than that of the value, got '{name}' for both: reports "
                f"show {SHOWN[option]} without noise, so each value could be seen"
            )


def _batch_lines(settings: ProducerConfig, collection: Collection) -> int:
    """Return the most lines that are stored as one part, wholly or not at all, in a quarter of the outbox."""
    size = report_bytes(mechanism_number(collection.mechanism), collection.mechanism.width)
    return min(BATCH_LINES, settings.outbox_bytes // 4 // size, PART_BYTES // (size + QUEUED_BYTES))


def _progress(settings: ProducerConfig, collection: Collection, field: str, path: Path) -> ResumePoints:
    secret = secret_of(settings.data_dir, settings.secret_file)
    return ResumePoints(settings.data_dir, secret, collection.name, field, path)
