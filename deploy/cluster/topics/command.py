"""`deniable topics`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from aggregator.topics.names import Topics
from deploy.cli.options import config_option, servers_option
from deploy.cluster.permissions import acls as acl_setup
from deploy.cluster.permissions import quotas as quota_setup
from deploy.cluster.permissions.role_option import role_option
from deploy.cluster.permissions.roles import Role
from deploy.cluster.topics import setup as topic_setup
from deploy.config.file import load
from producers.transport.cluster import Cluster

TopicsCommand = Callable[..., None]


class Principal(click.ParamType):
    """The name of a principal, with or without `User:` before it."""

    name = "NAME"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        """Return the name alone; refuse `*`, by which Kafka means everybody."""
        name = str(value).removeprefix("User:")
        if not name.strip() or name == "*":
            self.fail(f"must be one principal, got '{value}'", parameter, context)
        return name


def _principal_option(role: Role) -> Callable[[TopicsCommand], TopicsCommand]:
    return click.option(
        f"--{role}",
        f"{role}s",
        type=Principal(),
        multiple=True,
        default=[f"deniable-{role}"],
        show_default=f"deniable-{role}, if no principal is given",
        help=f"A principal for the role {role}; may be repeated. User:NAME is the same as NAME.",
    )


@click.group()
def topics() -> None:
    """Create or check the topics that a deployment needs.

    Example: deniable topics create
    """


@topics.command(short_help="Create absent topics and permissions.")
@config_option
@servers_option
@click.option("--partitions", type=click.IntRange(1, 1000), help="Overrides kafka.partitions of the file.")
@click.option(
    "--acls", "with_acls", is_flag=True, help="Also create the permissions of each role's principal."
)
@_principal_option(Role.PRODUCER)
@_principal_option(Role.AGGREGATOR)
@_principal_option(Role.READER)
@click.option(
    "--producer-bytes-per-second",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help=f"With --acls, bytes a second that each producer may send to each broker; 0 for no limit. Default: "
    f"{quota_setup.DEFAULT_BYTES_PER_SECOND} for producers without a quota.",
)
@click.pass_context
def create(
    context: click.Context,
    config: Path,
    bootstrap_servers: str | None,
    partitions: int | None,
    with_acls: bool,
    producers: Sequence[str],
    aggregators: Sequence[str],
    readers: Sequence[str],
    producer_bytes_per_second: int | None,
) -> None:
    """Create absent topics and, with --acls, permissions; a second call changes nothing.

    Users and passwords are not created. A principal with a certificate is named by its subject, as the broker
    maps it. If you name any principal, only named ones get permissions: name all three roles at first, and
    later only the principal that you add.

    Example: deniable topics create --acls --producer app-1 --aggregator worker --reader dashboard
    """
    given = _given(context, producers, aggregators, readers)
    if not with_acls and (given or producer_bytes_per_second is not None):
        raise click.UsageError("--producer, --aggregator, --reader and the quota need --acls")
    loaded = load(config, bootstrap_servers)
    wanted = replace(loaded.topics, partitions=partitions or loaded.topics.partitions)
    created = topic_setup.create(loaded.cluster, wanted, loaded.kafka.replication_factor)
    for name in created:
        click.echo(name)
    few = "1 topic" if len(created) == 1 else f"{len(created)} topics"
    click.echo(f"{few} created" if created else "all topics existed already", err=True)
    if with_acls:
        everybody = {Role.PRODUCER: producers, Role.AGGREGATOR: aggregators, Role.READER: readers}
        _allow(loaded.cluster, wanted, given or everybody, producer_bytes_per_second)
    for finding in topic_setup.check(loaded.cluster, wanted, role=None, collections=loaded.collections):
        click.echo(f"not ready: {finding}", err=True)
    if wanted != loaded.topics:
        click.echo(
            f"they have {wanted.partitions} partitions, but {config} says {loaded.topics.partitions}: "
            f"set kafka.partitions: {wanted.partitions} in it, or all other commands refuse the topics",
            err=True,
        )


def _given(
    context: click.Context, producers: Sequence[str], aggregators: Sequence[str], readers: Sequence[str]
) -> dict[Role, Sequence[str]]:
    """Return the principals given; the default ones if none is given."""
    named = {Role.PRODUCER: producers, Role.AGGREGATOR: aggregators, Role.READER: readers}
    default = click.core.ParameterSource.DEFAULT
    return {
        role: names for role, names in named.items() if context.get_parameter_source(f"{role}s") != default
    }


def _allow(
    cluster: Cluster,
    topics: Topics,
    principals: Mapping[Role, Sequence[str]],
    bytes_per_second: int | None,
) -> None:
    with topic_setup.connected(cluster) as admin:
        lines = acl_setup.allow(admin, topics, principals)
        lines += quota_setup.limit(admin, principals.get(Role.PRODUCER, ()), bytes_per_second)
        more = acl_setup.beyond(admin, topics, principals)
    for line in lines:
        click.echo(line)
    if not lines:
        click.echo("all permissions and quotas existed already", err=True)
    for line in more:
        click.echo(f"more than its role needs, left unchanged: {line}", err=True)


@topics.command("check", short_help="Check topics, settings and our permissions.")
@config_option
@servers_option
@role_option("Role of the collection file's principal.")
def check_topics(config: Path, bootstrap_servers: str | None, role: str) -> None:
    """Check topics, settings and our permissions; print a remedy for each finding, exit status 1 if any.

    Producers and readers may not see all topics; for them only those of their role are checked.

    Example: deniable topics check --as producer
    """
    loaded = load(config, bootstrap_servers)
    topic_setup.refuse(topic_setup.check(loaded.cluster, loaded.topics, Role(role), loaded.collections))
    click.echo("all topics fit" if role == Role.AGGREGATOR else f"all topics that a {role} needs fit")
