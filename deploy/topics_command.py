"""`deniable topics`."""

from dataclasses import replace
from pathlib import Path

import click

from deploy import topic_setup
from deploy.collection_file import load
from deploy.command_options import config_option, servers_option


@click.group()
def topics() -> None:
    """Make or check the topics that a deployment needs.

    Example: deniable topics create
    """


@topics.command()
@config_option
@servers_option
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
    few = "1 topic" if len(made) == 1 else f"{len(made)} topics"
    click.echo(f"{few} made" if made else "all topics were there already", err=True)
    for finding in topic_setup.check(loaded.kafka.bootstrap_servers, wanted):
        click.echo(f"not ready: {finding}", err=True)
    if wanted != loaded.topics:
        click.echo(
            f"they have {wanted.partitions} partitions, and {config} says {loaded.topics.partitions}: "
            f"set kafka.partitions: {wanted.partitions} in it, or every other command refuses them",
            err=True,
        )


@topics.command("check")
@config_option
@servers_option
def check_topics(config: Path, bootstrap_servers: str | None) -> None:
    """Check that the topics exist with the right partitions and settings; a remedy for each finding.

    Example: deniable topics check
    """
    loaded = load(config, bootstrap_servers)
    topic_setup.refuse(topic_setup.check(loaded.kafka.bootstrap_servers, loaded.topics))
    click.echo("all topics fit")
