"""`deniable produce`."""

from pathlib import Path
from typing import BinaryIO

import click

from deploy import topic_setup
from deploy.collection_file import load
from deploy.command_options import config_option, servers_option
from deploy.feed import Feed, feed_collection


@click.command()
@click.argument("collection")
@click.option(
    "--input",
    "source",
    type=click.File("rb"),
    default="-",
    show_default=True,
    help="A file in UTF-8; - is stdin.",
)
@click.option(
    "--format",
    "layout",
    type=click.Choice(["csv", "jsonl"]),
    default="csv",
    show_default=True,
    help="csv: the first line names the columns; jsonl: an object a line.",
)
@click.option("--field", required=True, metavar="NAME", help="Column or field that holds the value.")
@click.option("--clients", metavar="NAME", help="Column or field that holds the client's id.")
@click.option("--no-clients", is_flag=True, help="Every line is a client of its own.")
@config_option
@servers_option
def produce(
    collection: str,
    source: BinaryIO,
    layout: str,
    field: str,
    clients: str | None,
    no_clients: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Randomize values from a file or stdin and send the reports; nothing else leaves.

    A line that lacks a field is skipped and counted.

    Example: deniable produce carrier --input f.csv --field carrier --no-clients
    """
    if (clients is None) != no_clients:
        raise click.UsageError(
            "give either --clients NAME, or --no-clients if every line is a client of its own"
        )
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    topic_setup.require(loaded.kafka.bootstrap_servers, loaded.topics)
    feed_collection(loaded, asked, Feed(source, layout, field, clients, asked.takes_integers))
