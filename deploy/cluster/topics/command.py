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

Command = Callable[..., None]


class Principal(click.ParamType):
    """The name of a principal, with `User:` before it or not."""

    name = "NAME"

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> str:
        """The name alone. `*` is refused: to Kafka that is everybody."""
        name = str(value).removeprefix("User:")
        if not name.strip() or name == "*":
            self.fail(f"must be one principal, got '{value}'", parameter, context)
        return name


def _principal_option(role: Role) -> Callable[[Command], Command]:
    return click.option(
        f"--{role}",
        f"{role}s",
        type=Principal(),
        multiple=True,
        default=[f"deniable-{role}"],
        show_default=f"deniable-{role}, where no principal is named",
        help=f"A principal that does the work of a{'n' * (role is Role.AGGREGATOR)} {role}; may be repeated. "
        f"User:NAME is the same as NAME.",
    )


@click.group()
def topics() -> None:
    """Make or check the topics that a deployment needs.

    Example: deniable topics create
    """


@topics.command()
@config_option
@servers_option
@click.option("--partitions", type=click.IntRange(1, 1000), help="Wins over kafka.partitions of the file.")
@click.option("--acls", "with_acls", is_flag=True, help="Allow three principals what they need, and no more.")
@_principal_option(Role.PRODUCER)
@_principal_option(Role.AGGREGATOR)
@_principal_option(Role.READER)
@click.option(
    "--producer-bytes-per-second",
    type=click.IntRange(min=0),
    metavar="BYTES",
    help=f"With --acls, what each producer may send to each broker; 0: no limit. Default: "
    f"{quota_setup.DEFAULT_BYTES_PER_SECOND} for those that have no quota.",
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
    """Make the topics that are absent, and permissions with --acls; a second call changes nothing.

    Users and passwords are not made: those are yours. A principal with a certificate is called by its
    subject, as the broker maps it. Where one is named, only those that are named are meant: name all three
    roles at first, and one that is added later alone.

    Example: deniable topics create --acls --producer app-1 --aggregator worker --reader dashboard
    """
    given = _given(context, producers, aggregators, readers)
    if not with_acls and (given or producer_bytes_per_second is not None):
        raise click.UsageError("principals and their quota are made with --acls: give that, too")
    loaded = load(config, bootstrap_servers)
    wanted = replace(loaded.topics, partitions=partitions or loaded.topics.partitions)
    made = topic_setup.create(loaded.cluster, wanted, loaded.kafka.replication_factor)
    for name in made:
        click.echo(name)
    few = "1 topic" if len(made) == 1 else f"{len(made)} topics"
    click.echo(f"{few} made" if made else "all topics were there already", err=True)
    if with_acls:
        everybody = {Role.PRODUCER: producers, Role.AGGREGATOR: aggregators, Role.READER: readers}
        _allow(loaded.cluster, wanted, given or everybody, producer_bytes_per_second)
    for finding in topic_setup.check(loaded.cluster, wanted, role=None, collections=loaded.collections):
        click.echo(f"not ready: {finding}", err=True)
    if wanted != loaded.topics:
        click.echo(
            f"they have {wanted.partitions} partitions, and {config} says {loaded.topics.partitions}: "
            f"set kafka.partitions: {wanted.partitions} in it, or every other command refuses them",
            err=True,
        )


def _given(
    context: click.Context, producers: Sequence[str], aggregators: Sequence[str], readers: Sequence[str]
) -> dict[Role, Sequence[str]]:
    """Principals that were named; where any is, only those are meant."""
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
        click.echo("all permissions and quotas were there already", err=True)
    for line in more:
        click.echo(f"beyond what its role needs, and left as it is: {line}", err=True)


@topics.command("check")
@config_option
@servers_option
@role_option("Whose work the principal of the collection file is to do.")
def check_topics(config: Path, bootstrap_servers: str | None, role: str) -> None:
    """Check topics, their settings, and our permissions; a remedy for each finding, exit status 1 if any.

    A producer and a reader are not allowed to see all topics, and are told of theirs.

    Example: deniable topics check --as producer
    """
    loaded = load(config, bootstrap_servers)
    topic_setup.refuse(topic_setup.check(loaded.cluster, loaded.topics, Role(role), loaded.collections))
    click.echo("all topics fit" if role == Role.AGGREGATOR else f"all that a {role} needs fits")
