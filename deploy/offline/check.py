"""`deniable check`."""

from pathlib import Path

import click

from deploy.cli.options import config_option
from deploy.config.describe import describe
from deploy.config.file import CollectionFileError, load


@click.command()
@config_option
def check(config: Path) -> None:
    """Check the collection file and say what each collection costs; nothing connects.

    Example: deniable check --config deniable.yaml
    """
    loaded = load(config)
    for allowance in loaded.allowances:
        click.echo(describe(allowance))
    try:
        _ = loaded.cluster
    except CollectionFileError as error:  # the environment of those that connect may hold the rest
        click.echo(f"as it is here, what connects refuses: {error}", err=True)
