"""`deniable export`: a collection's final estimates or windows in files."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet  # noqa: F401 - without the extra, the command says so at once

from deniable.aggregator.history.periods import Period
from deniable.analysis.export.bucket_address import SCHEME, bucket_and_prefix
from deniable.analysis.export.bucket_prefix import BucketPrefix
from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.export.exporter import export as export_files
from deniable.analysis.export.layout import KINDS
from deniable.analysis.export.local_folder import locked
from deniable.analysis.export.place import ExportPlace
from deniable.analysis.sources.left_out import deleted_sentence
from deniable.analysis.sources.topic import deleted_before
from deniable.analysis.tables.estimate_table import estimate_schema
from deniable.analysis.tables.file_formats import FORMATS
from deniable.analysis.tables.window_table import window_schema
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration, load
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.logs import silence_clients
from deniable.deploy.cli.options import Folder, config_option, servers_option
from deniable.deploy.query.period_options import optional_period_options, period_asked
from deniable.deploy.services.kafka_wait import once_kafka_answers
from deniable.estimators.collection import Collection
from deniable.protocol.words import number_of

OTHER_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|s3:", re.IGNORECASE)


class FolderOrPrefix(Folder):
    """A folder, as a Path, or `s3://BUCKET/PREFIX`, as a text. Other URLs are no folders, nor is `-`."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Return the URL as it is."""
        if not isinstance(value, str):
            return super().convert(value, parameter, context)
        if value.startswith(SCHEME):
            bucket_and_prefix(value)
            return value
        if value == "-" or OTHER_URL.match(value):
            self.fail(f"must be a folder or s3://BUCKET/PREFIX, got {value}", parameter, context)
        return super().convert(value, parameter, context)


@click.command()
@click.argument("collection")
@click.option(
    "--format",
    "ending",
    type=click.Choice(FORMATS),
    default="parquet",
    show_default=True,
    help="Of the files. Both have the same columns.",
)
@click.option(
    "--output",
    type=FolderOrPrefix(),
    required=True,
    help="Folder of the files, created if it is absent, or s3://BUCKET/PREFIX.",
)
@click.option(
    "--of",
    "kind",
    type=click.Choice(KINDS),
    default="estimates",
    show_default=True,
    help="Final estimates, or the counts of final windows, from which rollup and decode estimate.",
)
@click.option("--follow", is_flag=True, help="Go on with windows that become final, until Ctrl-C.")
@optional_period_options
@config_option
@servers_option
def export(
    collection: str,
    ending: str,
    output: Path | str,
    kind: str,
    follow: bool,
    start: str | None,
    end: str | None,
    last: int | None,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Write final estimates or windows to files, each window once: OUTPUT/collection=NAME/day=2026-01-31/.

    Without a period: all that the topic keeps, and in the next run what is new. Run it as often as you like,
    and kill it when you like: no window is in the files twice, and no file is half written.

    Example: deniable export carrier --output estimates
    """
    is_bounded = (start, end, last) != (None, None, None)
    if follow and is_bounded:
        raise click.UsageError("give either --follow or a period")
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    period = period_asked(asked, start, end, last) if is_bounded else None
    schema = estimate_schema() if kind == "estimates" else window_schema()
    silence_clients()
    topics = loaded.topics
    topic = topics.estimates if kind == "estimates" else topics.windows
    needs = partial(topic_checks.require_readable, loaded.cluster, topics, topic)
    once_kafka_answers(needs) if follow else needs()
    with opened_place(output) as place:
        files = DayFiles(place, asked, kind, ending, schema)
        if lost := files.forget_if_lost():
            click.echo(lost_sentence(asked.name, lost, is_bounded=is_bounded), err=True)
        if period is not None:
            _say_deleted(loaded, asked, period, topic)
        try:
            run_until_signalled(
                export_files(
                    loaded.cluster,
                    topics,
                    files,
                    period,
                    follows=follow,
                    caught_up=lambda: _say_so_far(files) if follow else None,
                )
            )
        finally:
            click.echo("\n".join(lines_of_export(files)), err=True)


def opened_place(output: Path | str) -> AbstractContextManager[ExportPlace]:
    """Open what `FolderOrPrefix` returned."""
    return nullcontext(BucketPrefix(output)) if isinstance(output, str) else locked(output)


def _say_deleted(loaded: Configuration, collection: Collection, period: Period, topic: str) -> None:
    """Say on stderr if the topic has deleted records of the period."""
    cluster, partitions = loaded.cluster, loaded.topics.partitions
    kept_from = run_until_signalled(deleted_before(cluster, topic, partitions, collection, period, None))
    if kept_from is not None:
        click.echo(deleted_sentence(collection.name, period, kept_from, topic), err=True)


def lost_sentence(name: str, lost: Sequence[str], *, is_bounded: bool = False) -> str:
    """Say that files of former runs are gone, and what this run does, or the next one without a period."""
    one = len(lost) == 1
    reader = "the next run without a period reads" if is_bounded else "reading"
    return (
        f"{name}: {number_of(len(lost), 'exported file', ',')} {'is' if one else 'are'} no longer there"
        f"{'' if one else ', the first'}: {lost[0]}; {reader} the whole topic again"
    )


def _say_so_far(files: DayFiles) -> None:
    click.echo(f"{_written(files)} so far; following, Ctrl-C ends", err=True)


def _written(files: DayFiles) -> str:
    """Say how many windows this run wrote, and to how many files, each counted once."""
    windows, number = len(files.windows), len(files.files)
    if not windows:
        hint = "" if files.collection.entries else " with estimates of values; --of windows exports counts"
        return f"{files.collection.name}: no new windows{hint}"
    return (
        f"{files.collection.name}: {number_of(windows, 'window', ',')} written to "
        f"{number_of(number, 'file', ',')}"
    )


def lines_of_export(files: DayFiles) -> list[str]:
    """Say what a run wrote, and which windows of the collection it left out."""
    name = files.collection.name
    skipped = [
        f"{name}: {number_of(len(starts), 'window', ',')} with other parameters (fingerprint {fingerprint}) "
        "skipped: export them with the collection file that they were counted under"
        for fingerprint, starts in sorted(files.others.items())
    ]
    gone = len(files.withdrawn)
    reason = "no report of them counts any more"
    removed = [f"{name}: {number_of(gone, 'window', ',')} removed: {reason}"] if gone else []
    return [*skipped, *removed, _written(files)]
