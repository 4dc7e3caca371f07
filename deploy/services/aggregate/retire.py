"""`deniable retire`."""

from pathlib import Path

import click

from deniable.aggregator.maintenance.ledger_changes import retire
from deniable.cluster.existing_topics.of_aiokafka import create_no_topics_here
from deniable.config.file import load
from deniable.deploy.cli.event_loop import run_until_signalled
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.cluster.deployment import deployment_of


@click.command("retire")
@click.argument("name")
@config_option
@servers_option
def retire_command(name: str, config: Path, bootstrap_servers: str | None) -> None:
    """End a collection, or former parameters of one, that is no longer in the collection file.

    Its packs are rejected from now on. Counts keep their retention, but open windows get no final estimate.
    Workers with the new file refuse to start before this, so no collection is lost by oversight. It cannot be
    undone: a retired collection never counts again.

    Example: deniable retire carrier
    """
    create_no_topics_here()
    for partition, offset in run_until_signalled(
        retire(deployment_of(load(config, bootstrap_servers)), name)
    ).items():
        click.echo(f"partition {partition}: '{name}' is retired from offset {offset} on")
