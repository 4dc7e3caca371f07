"""Checks before any command sends reports."""

import re
from contextlib import suppress
from pathlib import Path

import click

from deploy.cluster.connection.probe import RefusedError, UnreachableError
from deploy.cluster.topics import setup as topic_setup
from deploy.cluster.topics.published import compared
from deploy.config.file import Configuration
from estimators.collection import Collection
from producers.budget.postgres.connection import AwayError, DatabaseConnection
from producers.config import ProducerConfig
from producers.transport.publication_reader import UnreadableError

# What PostgreSQL answers to a producer that it will never let in; libpq gives no code for these.
FOR_GOOD = re.compile(
    r'(database|role) ".*" does not exist|authentication failed|no password supplied|no pg_hba\.conf entry'
    r"|is not permitted to log in|permission denied for database"
)


def check_topics(loaded: Configuration, collection: Collection, data_dir: Path) -> None:
    """Check the topic of reports, then the parameters; if Kafka is away, warn and continue."""
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
    else:
        check_parameters(loaded, collection)


def check_parameters(loaded: Configuration, collection: Collection) -> None:
    """Raise ClickException if the workers count the collection with other parameters, or not at all.

    Continue if that cannot be found out: no worker has started yet, or the cluster does not say.
    """
    with suppress(UnreadableError):
        differing, _ = compared(loaded.cluster, loaded.topics, [collection])
        if differing:
            raise click.ClickException(f"nothing was sent: {differing[0]}")


def check_budget_store(settings: ProducerConfig) -> None:
    """Raise ClickException if the database with the budgets refuses this producer for good.

    If it is only away, continue: reports of clients wait for it.
    """
    if settings.budget_store is None:
        return
    try:
        DatabaseConnection(settings.budget_store).close()
    except AwayError as error:
        if FOR_GOOD.search(str(error)):
            raise click.ClickException(
                f"nothing was sent: {error}; clients cannot be charged. See that database, user and password "
                "(PGPASSWORD) are right"
            ) from None


def check_own_clients(settings: ProducerConfig) -> None:
    """Raise ClickException if one report of a collection costs more than its budget."""
    for allowance in settings.allowances:
        try:
            allowance.check_own_clients()
        except ValueError as error:
            raise click.ClickException(f"{error}; every line would be refused") from None
