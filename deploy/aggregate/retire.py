"""`deniable retire`."""

from pathlib import Path

import click

from aggregator.maintenance.ledger_changes import retire
from deploy.cli.event_loop import run_until_told
from deploy.cli.options import config_option, servers_option
from deploy.cluster.deployment import deployment_of
from deploy.config.file import load


@click.command("retire")
@click.argument("name")
@config_option
@servers_option
def retire_command(name: str, config: Path, bootstrap_servers: str | None) -> None:
    """End a collection, or its former parameters, that the collection file no longer holds.

    Its packs are turned away from here on; what was counted is kept as long as ever, but windows that are
    open get no final estimate. Workers with the new file refuse to start before this, so that no collection
    is lost by an oversight. It is for good: what is retired does not count again.

    Example: deniable retire carrier
    """
    for partition, offset in run_until_told(
        retire(deployment_of(load(config, bootstrap_servers)), name)
    ).items():
        click.echo(f"partition {partition}: '{name}' is retired from offset {offset} on")
