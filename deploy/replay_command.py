"""`deniable replay`."""

import asyncio
from pathlib import Path

import click

from aggregator.replay import ReplayError
from aggregator.replay import replay as recount
from deploy import topic_setup
from deploy.collection_file import load
from deploy.command_options import config_option, servers_option
from deploy.deployment import deployment_of


@click.command()
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the workers may take to count what is in the log.",
)
@config_option
@servers_option
def replay(wait: float, config: Path, bootstrap_servers: str | None) -> int:
    """Recount the log from offset 0 and compare with the stored counts; exit status 1 unless equal.

    Waits until the workers have counted what is in the log when it begins.

    Example: deniable replay
    """
    loaded = load(config, bootstrap_servers)
    topic_setup.require(loaded.kafka.bootstrap_servers, loaded.topics)
    found = asyncio.run(recount(deployment_of(loaded), wait))
    windows = len(found.counts.windows())
    click.echo(
        f"{found.records} records recounted; {windows} windows and {found.finals} final estimates compared",
        err=True,
    )
    if found.records and not windows and not found.difference:
        raise ReplayError("nothing to compare: no window of the log is still kept (retention_seconds)")
    click.echo(f"difference: {found.difference}")
    return 0 if found.difference == 0 else 1
