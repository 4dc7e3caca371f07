"""Options that several commands take."""

from pathlib import Path

import click

from deploy.collection_file import DEFAULT_FILE

# Not `readable`: click would make a file that cannot be read a wrong usage, and one that is absent not.
CONFIG_PATH = click.Path(path_type=Path, readable=False)

config_option = click.option(
    "--config", type=CONFIG_PATH, default=DEFAULT_FILE, show_default=True, help="The collection file."
)
servers_option = click.option(
    "--bootstrap-servers", metavar="HOST:PORT", help="An existing Kafka; wins over the collection file."
)
