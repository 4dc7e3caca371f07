"""`deniable canary`."""

from pathlib import Path

import click

from deniable.config.file import load
from deniable.deploy.cli.options import (
    Folder,
    config_option,
    metrics_listen_option,
    metrics_port_option,
    servers_option,
)
from deniable.deploy.produce.canary import run_canary
from deniable.deploy.produce.checks import check_destination, check_option, check_own_clients
from deniable.producers.opening.from_file import producer_config

REPORTS_PER_WINDOW = 100_000


@click.command()
@click.argument("collection")
@click.option(
    "--reports",
    type=click.IntRange(1, 10**9),
    default=REPORTS_PER_WINDOW,
    show_default=True,
    help="Reports a window, at a steady rate; more reports show smaller defects.",
)
@click.option(
    "--data-dir",
    type=Folder(),
    help="Folder of secret and outbox, which processes may share; overrides the collection file.",
)
@metrics_port_option
@metrics_listen_option
@config_option
@servers_option
def canary(
    collection: str,
    reports: int,
    data_dir: Path | None,
    metrics_port: int | None,
    metrics_listen: tuple[str, int] | None,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Send reports with a known true distribution, like any producer, until Ctrl-C.

    Workers compare each window with that distribution, see deniable_canary_chi_square. The values are random
    and belong to nobody, so no client limits apply. While Kafka is away, reports are kept.

    Example: deniable canary canary --reports 100000
    """
    loaded = load(config, bootstrap_servers)
    check_option(loaded, bootstrap_servers)
    asked = loaded.collection(collection)
    if not asked.canary:
        raise click.UsageError(f"{collection} is not a canary; its entry must say canary: true")
    if reports < (least := asked.minimum_reports):
        raise click.UsageError(f"--reports must be at least minimum_reports, {least}, got {reports}")
    settings = producer_config(loaded, [asked], data_dir=data_dir)
    check_own_clients(settings)
    check_destination(loaded, asked, settings.data_dir)
    run_canary(settings, reports, metrics_port=metrics_port, metrics_listen=metrics_listen)
