"""`deniable watch`."""

from pathlib import Path

import click

from deploy import topic_setup
from deploy.collection_file import load
from deploy.command_options import config_option, servers_option
from deploy.event_loop import run_until_told
from deploy.watch import watch_collection


@click.command()
@click.argument("collection")
@config_option
@servers_option
def watch(collection: str, config: Path, bootstrap_servers: str | None) -> None:
    """Follow a collection's estimates: a live table, or JSON lines when stdout is no terminal.

    Example: deniable watch carrier
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    topic_setup.require_readable(loaded.cluster, loaded.topics, loaded.topics.estimates)
    run_until_told(watch_collection(loaded, asked))
