"""`deniable produce`."""

from pathlib import Path
from typing import BinaryIO

import click

from deniable.config.file import load
from deniable.deploy.cli.line_output import is_reader_gone
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
from deniable.deploy.produce.input.options import (
    attended,
    check_fields,
    check_options,
    record_options,
    unknown_option,
)
from deniable.deploy.produce.input.resume import ResumePoints
from deniable.deploy.produce.input.values import value_reader
from deniable.deploy.produce.run import run_produce
from deniable.deploy.produce.timing import DEFAULT
from deniable.deploy.produce.unknown.near_numbers import doubt_of
from deniable.deploy.produce.unknown.unknown_reports import MIN_REPORTS, UnknownReports
from deniable.deploy.produce.unknown.unknown_values import UnknownValues, value_options
from deniable.estimators.collection import Collection
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError
from deniable.producers.opening.console_producer import on_console
from deniable.producers.opening.from_file import producer_config
from deniable.producers.responders.batch import PART_BYTES, QUEUED_BYTES
from deniable.protocol.secrets.secret import secret_of
from deniable.protocol.wire import report_bytes


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
@record_options
@click.option(
    "--time-field",
    metavar="NAME",
    help="Column or field with the time of the event: ISO 8601 (UTC where it names no zone), unix seconds or "
    "milliseconds. "
    "Reports later than the grace do not count.  [default: when the line is read]",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Stop at a bad line instead of skipping it, and before anything is sent if most of the first values "
    "are unknown; so whether anything is sent depends on values.",
)
@unknown_option("a run ends with status 4 once its reports show that most are not")
@click.option(
    "--data-dir",
    type=Folder(),
    help="Folder of secret, budgets and outbox, which processes may share; overrides the collection file.",
)
@click.option(
    "--console",
    is_flag=True,
    help="Print what would leave instead, randomized reports alone, a JSON line for each pack: to see before "
    "the first run what Kafka would hold. Needs no Kafka, and charges no client.",
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
    delimiter: str | None,
    field: str,
    second_field: str | None,
    clients: str | None,
    time_field: str | None,
    no_clients: bool,
    strict: bool,
    shows_unknown: bool | None,
    data_dir: Path | None,
    console: bool,
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
    check_options(clients, no_clients=no_clients, layout=layout, delimiter=delimiter)
    if follow and not is_file(stream):
        raise click.UsageError(
            "--follow needs --input with a regular file; stdin and pipes are read as lines arrive, without it"
        )
    if console and (data_dir is not None or bootstrap_servers is not None):
        raise click.UsageError(
            "--console goes neither with --data-dir nor with --bootstrap-servers: it keeps and sends nothing"
        )
    loaded = load(config, bootstrap_servers)
    check_option(loaded, bootstrap_servers)
    asked = loaded.collection(collection)
    check_fields(asked, layout, field, second_field, clients=clients, time_field=time_field)
    wait = 1000 * DEFAULT.wait
    settings = producer_config(
        loaded, [asked], data_dir=data_dir, block_milliseconds=wait, connects=not console
    )
    if console:
        settings = click.get_current_context().with_resource(on_console(settings))
    if no_clients:
        check_own_clients(settings)
    else:
        check_budget_store(settings)
    if not console:
        check_destination(loaded, asked, settings.data_dir)
    is_shown, is_deciding = attended(shows_unknown)
    reports = UnknownReports(
        asked,
        value_options(field, second_field),
        has_clients=not no_clients,
        is_deciding=is_deciding,
        consequence="Nothing was sent" if console else "What was stored is sent",
    )
    if notice := reports.notice(is_strict=strict):
        click.echo(notice, err=True)
    read = field if second_field is None else f"{field}, {second_field}"
    is_stored = is_file(stream) and not console
    progress = _progress(settings, asked, read, Path(stream.name)) if is_stored else None
    try:
        run_produce(
            settings,
            Inputs(stream, progress, follow=follow),
            InputBatches(
                layout,
                field,
                clients,
                value_reader(asked),
                strict,
                _batch_lines(settings, asked),
                time_field=time_field,
                second_field=second_field,
                delimiter=delimiter or ",",
                first_lines=MIN_REPORTS if reports.is_deciding else BATCH_LINES,
                doubt=doubt_of(asked) if is_shown else None,
                names_bytes=is_shown,
            ),
            metrics_port=metrics_port,
            metrics_listen=metrics_listen,
            unknown=UnknownValues(
                asked,
                field,
                second_field,
                is_shown=is_shown,
                is_strict=strict,
            ),
            reports=reports,
        )
    except DeliveryError:
        if not (console and is_reader_gone()):  # as of `| head`
            raise


def _batch_lines(settings: ProducerConfig, collection: Collection) -> int:
    """Return the most lines that are stored as one part, wholly or not at all, in a quarter of the outbox."""
    size = report_bytes(collection.mechanism.wire_number, collection.mechanism.width)
    return min(BATCH_LINES, settings.outbox_bytes // 4 // size, PART_BYTES // (size + QUEUED_BYTES))


def _progress(settings: ProducerConfig, collection: Collection, field: str, path: Path) -> ResumePoints:
    secret = secret_of(settings.data_dir, settings.secret_file)
    return ResumePoints(settings.data_dir, secret, collection.name, field, path)
