"""`deniable backfill`: events of the past, randomized and counted into exported files."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import click
import pyarrow.parquet  # noqa: F401 - without the extra, the command says so at once

from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.tables.estimate_table import estimate_schema
from deniable.analysis.tables.file_formats import FORMATS
from deniable.analysis.tables.window_table import window_schema
from deniable.config.file import load
from deniable.config.settings.allowance import Allowance
from deniable.deploy.backfill.past_counts import PastCounts
from deniable.deploy.backfill.past_files import PastFiles, unaccounted, write_windows
from deniable.deploy.backfill.past_limits import PastLimits, period_seconds
from deniable.deploy.backfill.sentences import cost_lines, outcome_lines
from deniable.deploy.cli.options import Folder, config_option
from deniable.deploy.produce.checks import check_own_clients
from deniable.deploy.produce.input.batches import InputBatch, InputBatches
from deniable.deploy.produce.input.inputs import InputParameter, Inputs
from deniable.deploy.produce.input.options import (
    attended,
    check_fields,
    check_options,
    record_options,
    unknown_option,
)
from deniable.deploy.produce.input.values import value_reader
from deniable.deploy.produce.unknown.unknown_reports import UnknownReports
from deniable.deploy.produce.unknown.unknown_values import UnknownValues, value_options
from deniable.deploy.query.export import FolderOrPrefix, opened_place
from deniable.producers.concurrency.clock import Clock
from deniable.producers.config import ProducerConfig
from deniable.producers.opening.from_file import producer_config
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.storage.store import Store, check_identity
from deniable.protocol.secrets.secret import Secret, secret_of

INTERRUPTED = "interrupted: files that were written are whole; the same command goes on with what is missing"
STOPPED = "nothing was written; mend it, and run the same command again"


@click.command()
@click.argument("collection")
@click.option(
    "--input",
    "stream",
    type=InputParameter(),
    default="-",
    show_default=True,
    help="A file in UTF-8, or - for stdin, with events in any order of time.",
)
@record_options
@click.option(
    "--time-field",
    required=True,
    metavar="NAME",
    help="Column or field with the time of the event: ISO 8601 (UTC where it names no zone), unix seconds or "
    "milliseconds.",
)
@click.option(
    "--output",
    type=FolderOrPrefix(),
    help="Folder of estimates, created if it is absent, or s3://BUCKET/PREFIX: that of deniable export, or "
    "another.",
)
@click.option(
    "--counts",
    type=FolderOrPrefix(),
    help="The same for counts of windows, from which rollup, decode and compare of the Python package "
    "estimate (files=); give both in one run, since a further one would randomize anew.",
)
@click.option(
    "--files",
    "ending",
    type=click.Choice(FORMATS),
    default="parquet",
    show_default=True,
    help="Format of the files. Both have the same columns.",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Stop at a bad line instead of skipping it, and if most of the first values are unknown; so whether "
    "anything is written depends on values.",
)
@unknown_option("nothing is written, with status 4, if the reports show that most are not")
@click.option(
    "--data-dir",
    type=Folder(),
    help="Folder of the secret, that of the clients' producer; overrides the collection file.",
)
@config_option
def backfill(
    collection: str,
    stream: BinaryIO,
    layout: str,
    delimiter: str | None,
    field: str,
    second_field: str | None,
    clients: str | None,
    no_clients: bool,
    time_field: str,
    output: Path | str | None,
    counts: Path | str | None,
    ending: str,
    strict: bool,
    shows_unknown: bool | None,
    data_dir: Path | None,
    config: Path,
) -> None:
    """Randomize events of the past and write the estimates of their windows to files, without Kafka.

    With the producer's secret and parameters, and its limits in the time of the events. Whoever runs this
    holds the true events, and nothing protects these from them. The files are as private as those of live
    reports, at the same epsilon a report; what the same clients reported live adds to that. Reports are
    counted, and never stored. Windows that the files have, or that still take live reports, are left out: a
    second run changes nothing, and one after a kill goes on.

    Example: deniable backfill plan --field plan --time-field at --clients user --input f.csv --output past
    """
    check_options(clients, no_clients=no_clients, layout=layout, delimiter=delimiter)
    if output == counts:
        raise click.UsageError(
            "give --output, --counts or both, and not the same folder: a folder holds one kind of files"
        )
    loaded = load(config)
    asked = loaded.collection(collection)
    check_fields(asked, layout, field, second_field, clients=clients, time_field=time_field)
    settings = producer_config(loaded, [asked], data_dir=data_dir, connects=False)
    (allowance,) = settings.allowances
    _check_collection(allowance, has_clients=not no_clients, is_estimated=output is not None)
    if no_clients:
        check_own_clients(settings)
    is_shown, is_deciding = attended(shows_unknown)
    feed = InputBatches(
        layout,
        field,
        clients,
        value_reader(asked),
        strict,
        time_field=time_field,
        second_field=second_field,
        delimiter=delimiter or ",",
        stopped=STOPPED,
        names_bytes=is_shown,
    )
    unknown = UnknownValues(asked, field, second_field, is_shown=is_shown, is_strict=strict)
    reports = UnknownReports(
        asked,
        value_options(field, second_field),
        has_clients=not no_clients,
        is_deciding=is_deciding,
        consequence="Nothing was written",
    )
    with ExitStack() as opened:

        def files_in(place: Path | str | None, kind: str, schema: Any) -> DayFiles | None:
            if place is None:
                return None
            return DayFiles(opened.enter_context(opened_place(place)), asked, kind, ending, schema)

        files = PastFiles(
            files_in(counts, "windows", window_schema()), files_in(output, "estimates", estimate_schema())
        )
        click.echo("\n".join(cost_lines(allowance, has_clients=not no_clients)), err=True)
        if notice := reports.notice(is_strict=strict):
            click.echo(notice, err=True)
        try:
            past, lacking = _counted(
                settings, allowance, Inputs(stream, None, follow=False), feed, unknown, reports, files
            )
            unwritten = write_windows(past, files, past.counted - lacking)
        except (KeyboardInterrupt, SystemExit):
            click.echo(INTERRUPTED, err=True)
            raise
        click.echo("\n".join(outcome_lines(past, feed, files, lacking, unwritten)), err=True)
    if sentence := unknown.summary():
        click.echo(sentence, err=True)


def _check_collection(allowance: Allowance, *, has_clients: bool, is_estimated: bool) -> None:
    """Raise UsageError if past events of a collection cannot be counted so."""
    collection = allowance.collection
    if is_estimated and (collection.growth is not None or not collection.entries):
        raise click.UsageError(
            f"windows of {collection.name} have no list of texts to estimate: give --counts alone, in which "
            "deniable decode looks for texts"
        )
    if has_clients and allowance.changes is not None:
        raise click.UsageError(
            f"changes in the budget of {collection.name} limit what a client shows in all periods together, "
            "which its producer alone counts: past events need a collection whose budget has no changes"
        )


def _counted(
    settings: ProducerConfig,
    allowance: Allowance,
    inputs: Inputs,
    feed: InputBatches,
    unknown: UnknownValues,
    reports: UnknownReports,
    files: PastFiles,
) -> tuple[PastCounts, set[int]]:
    """Count all events of the input; return also the windows that the budget does not let be written."""
    batches = _batches(inputs, feed, unknown)
    first = [*islice(batches, 1)]  # before a secret is created: a wrong file leaves nothing
    secret, words = _secret_of(settings), Keystream()
    randomization = Randomization({allowance.collection.name: allowance}, secret, words, Clock())
    has_clients = feed.client_field is not None
    with (
        TemporaryDirectory(prefix="deniable-backfill-") as folder,
        closing(PastLimits(allowance, secret, Path(folder))) as limits,
    ):
        charging = limits if has_clients else None
        past = PastCounts(allowance, randomization, charging, files.both, words, time.time(), reports.note)
        for batch in chain(first, batches):
            past.add(batch)
            reports.decide()
    feed.check_used()
    reports.decide(is_end=True)
    return past, unaccounted(past, files, period_seconds(allowance)) if has_clients else set()


def _batches(inputs: Inputs, feed: InputBatches, unknown: UnknownValues) -> Iterator[InputBatch]:
    for source, place in inputs:
        for batch in feed.batches(source, place):
            unknown.note(batch.values)
            yield batch


def _secret_of(settings: ProducerConfig) -> Secret:
    """Return the producer's secret, as the producer checks it."""
    secret = secret_of(settings.data_dir, settings.secret_file)
    with closing(Store(settings.data_dir)) as store:
        check_identity(store, secret)
    return secret
