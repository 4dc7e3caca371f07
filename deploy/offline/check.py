"""`deniable check`."""

from pathlib import Path

import click

from deploy.cli.options import config_option
from deploy.config.describe import describe
from deploy.config.file import CollectionFileError, load


@click.command()
@config_option
def check(config: Path) -> None:
    """Check the collection file and show what each collection costs; does not connect.

    Example: deniable check --config deniable.yaml
    """
    loaded = load(config)
    for allowance in loaded.allowances:
        click.echo(describe(allowance))
    try:
        _ = loaded.cluster
    except CollectionFileError as error:  # other commands may get the missing fields from their environment
        click.echo(f"commands that connect would refuse this: {error}", err=True)
