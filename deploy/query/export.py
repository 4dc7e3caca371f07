"""`deniable export`: a collection's final estimates or windows in files."""

from pathlib import Path

import click
import pyarrow.parquet  # noqa: F401 - without the extra, the command says so at once

from analysis.export.day_files import DayFiles, locked
from analysis.export.exporter import export as export_files
from analysis.export.layout import KINDS
from analysis.tables.estimate_table import estimate_schema
from analysis.tables.file_formats import FORMATS
from analysis.tables.window_table import window_schema
from deploy.cli.event_loop import run_until_signalled
from deploy.cli.options import Folder, config_option, servers_option
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import load
from deploy.query.period_options import optional_period_options, period_asked


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
@click.option("--output", type=Folder(), required=True, help="Folder of the files, created if it is absent.")
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
    output: Path,
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
    topics = loaded.topics
    with locked(output):
        files = DayFiles(output, asked, kind, ending, schema)
        topic_setup.require_readable(
            loaded.cluster, topics, topics.estimates if kind == "estimates" else topics.windows
        )
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


def _say_so_far(files: DayFiles) -> None:
    click.echo(f"{_written(files)} so far; following, Ctrl-C ends", err=True)


def _written(files: DayFiles) -> str:
    """Say how many windows this run wrote, and to how many files, each counted once."""
    windows, number = len(files.windows), len(files.files)
    if not windows:
        hint = "" if files.collection.entries else " with estimates of values; --of windows exports counts"
        return f"{files.collection.name}: no new windows{hint}"
    of_windows = f"{windows:,} window{'s' if windows != 1 else ''}"
    return f"{files.collection.name}: {of_windows} written to {number:,} file{'s' if number != 1 else ''}"


def lines_of_export(files: DayFiles) -> list[str]:
    """Say what a run wrote, and which windows of the collection it left out."""
    name = files.collection.name
    skipped = [
        f"{name}: {len(starts):,} windows with other parameters (fingerprint {fingerprint}) skipped: export "
        "them with the collection file that they were counted under"
        for fingerprint, starts in sorted(files.others.items())
    ]
    return [*skipped, _written(files)]
