"""What is checked before anything is sent, of whichever command."""

from pathlib import Path

import click

from deploy.cluster.connection.probe import RefusedError, UnreachableError
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import Configuration
from estimators.collection import Collection
from producers.config import ProducerConfig


def check_topics(loaded: Configuration, collection: Collection, data_dir: Path) -> None:
    """Check the topic of reports if Kafka is there; if it is not, say what that means."""
    try:
        topic_setup.require_reports(loaded.cluster, loaded.topics)
    except RefusedError:
        raise
    except UnreachableError as error:
        click.echo(
            f"{error}\nreports are kept in {data_dir} and sent once it answers; what comes later than "
            f"{collection.grace_seconds} s after its window is not counted",
            err=True,
        )


def check_own_clients(settings: ProducerConfig) -> None:
    """Refuse, with a ClickException, collections of which one report costs more than the budget."""
    for allowance in settings.allowances:
        try:
            allowance.check_own_clients()
        except ValueError as error:
            raise click.ClickException(f"{error}; every line would be refused") from None
