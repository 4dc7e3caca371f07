"""`deniable topics`."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import why_unavailable
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import Role, roles_of
from deniable.cluster.topics import checks as topic_checks
from deniable.config.file import load
from deniable.deploy.cli.logs import silence
from deniable.deploy.cli.options import config_option, servers_option
from deniable.deploy.cluster.permissions import acls as acl_setup
from deniable.deploy.cluster.permissions import quotas as quota_setup
from deniable.deploy.cluster.permissions.role_option import role_option
from deniable.deploy.cluster.topics import setup as topic_setup
from deniable.protocol.topic_names import Topics

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
@_principal_option(Role.EDGE)
@_principal_option(Role.RELAY)
@click.option(
    "--producer-bytes-per-second",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help=f"With --acls, bytes a second that each producer may send to each broker; 0 for no limit. Default: "
    f"{quota_setup.DEFAULT_BYTES_PER_SECOND} for producers without a quota.",
)
@click.option(
    "--edge-bytes-per-second",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help=f"The same for each edge. Default: {quota_setup.EDGE_BYTES_PER_SECOND} for edges without a quota.",
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
    edges: Sequence[str],
    relays: Sequence[str],
    producer_bytes_per_second: int | None,
    edge_bytes_per_second: int | None,
) -> None:
    """Create absent topics and, with --acls, permissions; a second call changes nothing.

    Users and passwords are not created. A principal with a certificate is named by its subject, as the broker
    maps it. If you name any principal, only named ones get permissions: name all roles at first, and later
    only the principal that you add. Edges and relays are for files with a section edge or relay.

    Example: deniable topics create --acls --producer app-1 --aggregator worker --reader dashboard
    """
    everybody = {
        Role.PRODUCER: producers,
        Role.AGGREGATOR: aggregators,
        Role.READER: readers,
        Role.EDGE: edges,
        Role.RELAY: relays,
    }
    given = _given(context, everybody)
    quotas = {Role.PRODUCER: producer_bytes_per_second, Role.EDGE: edge_bytes_per_second}
    if not with_acls and (given or any(each is not None for each in quotas.values())):
        raise click.UsageError("the options of roles and quotas need --acls")
    loaded = load(config, bootstrap_servers)
    _check_roles(given, config, loaded.topics)
    wanted = replace(loaded.topics, partitions=partitions or loaded.topics.partitions)
    created = topic_setup.create(loaded.cluster, wanted, loaded.kafka.replication_factor, loaded.collections)
    for name in created:
        click.echo(name)
    few = "1 topic" if len(created) == 1 else f"{len(created)} topics"
    click.echo(f"{few} created" if created else "all topics existed already", err=True)
    if with_acls:
        usual = {role: everybody[role] for role in roles_of(wanted)}
        _allow(loaded.cluster, wanted, given or usual, quotas)
    for finding in topic_setup.check(loaded.cluster, wanted, role=None, collections=loaded.collections):
        click.echo(f"{'warning' if finding.is_warning else 'not ready'}: {finding}", err=True)
    if wanted != loaded.topics:
        click.echo(
            f"they have {wanted.partitions} partitions, but {config} says {loaded.topics.partitions}: "
            f"set kafka.partitions: {wanted.partitions} in it, or all other commands refuse the topics",
            err=True,
        )


def _given(context: click.Context, named: Mapping[Role, Sequence[str]]) -> dict[Role, Sequence[str]]:
    """Return those roles whose principals were given as options."""
    default = click.core.ParameterSource.DEFAULT
    return {
        role: names for role, names in named.items() if context.get_parameter_source(f"{role}s") != default
    }


def _check_roles(given: Mapping[Role, Sequence[str]], config: Path, topics: Topics) -> None:
    for role in given:
        if role not in roles_of(topics):
            raise click.UsageError(
                f"--{role} needs a section edge or relay in {config}: without one no device uploads"
            )


def _allow(
    cluster: Cluster,
    topics: Topics,
    principals: Mapping[Role, Sequence[str]],
    quotas: Mapping[Role, int | None],
) -> None:
    with topic_checks.connected(cluster) as admin:
        lines = acl_setup.allow(admin, topics, principals)
        for role, bytes_per_second in quotas.items():
            usual = quota_setup.USUAL[role]
            lines += quota_setup.limit(admin, principals.get(role, ()), bytes_per_second, usual)
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
    silence("kafka")
    findings = topic_setup.check(loaded.cluster, loaded.topics, Role(role), loaded.collections)
    if away := asyncio.run(why_unavailable(loaded.cluster)):
        click.echo(f"warning: {away}", err=True)
    topic_checks.refuse(findings)
    which = "" if role == Role.AGGREGATOR else f" that {with_article(Role(role))} needs"
    click.echo(f"all topics{which} fit")
