"""`deniable broker`."""

from pathlib import Path

import click

from deniable.deploy.broker.broker import Broker
from deniable.deploy.cli.options import Folder


@click.command()
@click.option(
    "--data-dir",
    type=Folder(),
    help="Keep the data in this folder.  [default: a temporary one]",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0 for a free port."
)
def broker(data_dir: Path | None, port: int) -> None:
    """Run a real Apache Kafka, one node on loopback, in the foreground.

    Example: deniable broker --data-dir kafka-data --port 9092
    """
    click.echo("starting Kafka …", err=True)
    with Broker(data_dir, port, own_session=False) as running:
        click.echo(running.bootstrap_servers)
        click.echo("Kafka is running; Ctrl-C ends it", err=True)
        running.wait()
