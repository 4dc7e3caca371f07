"""`deniable check`."""

from pathlib import Path

import click

from deploy.collection_file import load
from deploy.command_options import config_option
from deploy.describe import describe


@click.command()
@config_option
def check(config: Path) -> None:
    """Check the collection file and say what each collection costs; nothing connects.

    Example: deniable check --config deniable.yaml
    """
    loaded = load(config)
    for allowance in loaded.allowances:
        click.echo(describe(allowance))
