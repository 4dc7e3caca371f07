"""Checks before any command sends reports."""

import re
from pathlib import Path

import click

from deniable.cluster.connection.probe import RefusedError, UnreachableError
from deniable.cluster.reading.publication_reader import UnreadableError
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import Configuration
from deniable.config.settings.edge_address import EdgeAddress
from deniable.deploy.cluster.edge_answers import ask_edge, collections_of
from deniable.deploy.cluster.topics.published import compared
from deniable.estimators.collection import Collection
from deniable.producers.budget.postgres.connection import AwayError, DatabaseConnection
from deniable.producers.config import ProducerConfig
from deniable.producers.errors import DeliveryError, HopelessError
from deniable.producers.transport.edge.collection_list import edge_disagreements

EDGE_SECONDS = 10.0

# What PostgreSQL answers to a producer that it will never let in; libpq gives no code for these.
FOR_GOOD = re.compile(
    r'(database|role) ".*" does not exist|authentication failed|no password supplied|no pg_hba\.conf entry'
    r"|is not permitted to log in|permission denied for database"
)


UNKNOWN = "whether the workers count {} with these parameters cannot be known"


def check_destination(loaded: Configuration, collection: Collection, data_dir: Path) -> None:
    """Check the topic of reports, or the edge, then the parameters; if it is away, warn and continue."""
    try:
        if (edge := loaded.edge_address) is not None:
            check_edge(edge, collection)
        else:
            topic_checks.require_reports(loaded.cluster, loaded.topics)
            check_parameters(loaded, collection)
    except (RefusedError, HopelessError):
        raise
    except (UnreachableError, DeliveryError) as error:
        seconds = intake_seconds(loaded, collection)
        click.echo(
            f"{error}\nreports are kept in {data_dir} and sent once it answers; those later than "
            f"{seconds} s after their window are not counted",
            err=True,
        )


def intake_seconds(loaded: Configuration, collection: Collection) -> int:
    """Return for how long after its end a window takes reports where this producer delivers.

    Edges take them for less time than workers, by what relays need; the file of a device may lack the section
    `relay`, so this assumes its default then.
    """
    is_to_edge = loaded.edge_address is not None
    return max(0, collection.grace_seconds - (loaded.delivery_seconds if is_to_edge else 0))


def check_edge(edge: EdgeAddress, collection: Collection) -> None:
    """Check that an edge takes the collection with these parameters.

    Raises
    ------
    ClickException if it does not; HopelessError if no edge is there, or not the configured one; another
    DeliveryError if it is away or not ready.
    """
    answers = ask_edge(edge, EDGE_SECONDS)
    listed = collections_of(edge, answers.listed)
    if differing := edge_disagreements([collection], listed):
        raise click.ClickException(f"nothing was sent: {differing[collection.name]}")
    if answers.reasons:
        raise DeliveryError(f"the edge at {edge.url} is not ready: {'; '.join(answers.reasons)}")


def check_option(loaded: Configuration, bootstrap_servers: str | None) -> None:
    """Raise UsageError if brokers are named although reports go to an edge."""
    if bootstrap_servers is not None and loaded.edge_address is not None:
        raise click.UsageError(
            f"--bootstrap-servers names Kafka, but producer.deliver is {loaded.producer.deliver}: leave it "
            "out, or set the variable DENIABLE_PRODUCER__DELIVER=kafka"
        )


def check_parameters(loaded: Configuration, collection: Collection) -> None:
    """Raise ClickException if the workers count the collection with other parameters, or not at all.

    If that cannot be found out, say so and continue: workers may start later.
    """
    try:
        differing, published = compared(loaded.cluster, loaded.topics, [collection])
    except UnreadableError as error:
        click.echo(f"{UNKNOWN.format(collection.name)}: {error}", err=True)
        return
    if differing:
        raise click.ClickException(f"nothing was sent: {differing[0]}")
    if collection.name not in published:
        click.echo(f"{UNKNOWN.format(collection.name)}: no worker has published yet what it counts", err=True)


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
