"""Checks before any command sends reports."""

from pathlib import Path

import click

from deploy.cluster.connection.probe import RefusedError, UnreachableError
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import Configuration
from estimators.collection import Collection
from producers.config import ProducerConfig


def check_topics(loaded: Configuration, collection: Collection, data_dir: Path) -> None:
    """Check the topic of reports; if Kafka is away, warn and continue."""
    try:
        topic_setup.require_reports(loaded.cluster, loaded.topics)
    except RefusedError:
        raise
    except UnreachableError as error:
        click.echo(
            f"{error}\nreports are kept in {data_dir} and sent once it answers; those later than "
            f"{collection.grace_seconds} s after their window are not counted",
            err=True,
        )


def check_own_clients(settings: ProducerConfig) -> None:
    """Raise ClickException if one report of a collection costs more than its budget."""
    for allowance in settings.allowances:
        try:
            allowance.check_own_clients()
        except ValueError as error:
            raise click.ClickException(f"{error}; every line would be refused") from None
