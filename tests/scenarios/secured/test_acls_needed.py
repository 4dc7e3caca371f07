"""Nothing is allowed without need: each permission that is taken away ends a named piece of the work."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ACLFilter, ACLPermissionType, ResourcePatternFilter
from kafka.structs import OffsetAndMetadata

from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.aggregator.topics.collection_publisher import CollectionPublisher
from deniable.aggregator.topics.markers import Markers
from deniable.aggregator.topics.relays import Relays
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.aggregator.views.latest_estimates import LatestEstimates
from deniable.cluster.connection.outage import Outage
from deniable.cluster.permissions.findings import missing, topic_operations
from deniable.cluster.permissions.roles import Permission, Role, permissions_of
from deniable.cluster.reading.partition_reader import read_rows
from deniable.cluster.reading.publication_reader import UnreadableError
from deniable.cluster.reading.topic_reader import records_since
from deniable.cluster.topics.findings import settings_of
from deniable.deploy.cluster.permissions import acls as acl_setup
from deniable.deploy.cluster.topics.published import compared
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.producers.transport.connection import connect
from deniable.protocol.uploads.relay_position import NO_SETTINGS, Position
from deniable.relay.service.group import RelayGroup
from tests.support.brokers.secured.broker import SecuredBroker
from tests.support.brokers.secured.deployments import SecuredDeployment
from tests.support.brokers.secured.principals import Principals
from tests.support.deploy.acl_operations import started
from tests.support.needed import but_for
from tests.support.processes import wait_until

pytestmark = pytest.mark.broker

PIECE_SECONDS = 20.0
HIDDEN_SECONDS = 2.0  # aiokafka waits for a topic that is hidden as for one that is not made yet
SENT = Position(0, 0, -1, NO_SETTINGS, sent_ms=1)
Piece = Callable[[SecuredDeployment], Awaitable[None]]


@pytest.fixture(scope="module")
def principals(secured_broker: SecuredBroker, tmp_path_factory: pytest.TempPathFactory) -> Principals:
    made = Principals(secured_broker, tmp_path_factory.mktemp("needed"), f"test-{uuid4().hex[:12]}-")
    made.set_up()
    with KafkaProducer(**secured_broker.admin_settings()) as kafka:
        for name in ("reports", "counts", "estimates", "windows", "uploads"):
            kafka.send(made.prefix + name, b"{}", key=b"of a test", partition=0).get(20)
    group = {"group_id": made.topics.relay_group, "enable_auto_commit": False}
    with KafkaConsumer(**secured_broker.admin_settings(), **group) as consumer:
        consumer.commit({TopicPartition(made.topics.uploads, 0): OffsetAndMetadata(0, SENT.metadata(), -1)})
    return made


def send(name: str) -> Piece:
    """A producer, an edge or a relay sends a record."""

    async def piece(deployment: SecuredDeployment) -> None:
        topic = deployment.prefix + name
        partitions = deployment.topics.partitions
        kafka = await asyncio.to_thread(connect, deployment.cluster, topic, partitions, 10)
        try:
            sent = kafka.send(topic, value=b"no pack", partition=0)
            await asyncio.to_thread(sent.get, 10)
        finally:
            kafka.close(timeout=1)

    return piece


def read(name: str) -> Piece:
    """Read a topic as ledgers, counts and reports are read."""

    async def piece(deployment: SecuredDeployment) -> None:
        assert await read_rows(deployment.cluster, deployment.prefix + name, 0)

    return piece


async def open_ledger(deployment: SecuredDeployment) -> None:
    """A worker takes a partition over: fences, writes and reads the ledger."""
    await stored(deployment)


async def checkpoint_position(deployment: SecuredDeployment) -> None:
    """A checkpoint commits the group's offset."""
    await stored(deployment, position=0)


def checkpoint(name: str) -> Piece:
    """A checkpoint's transaction writes to a topic."""

    async def piece(deployment: SecuredDeployment) -> None:
        await stored(deployment, Outgoing(deployment.prefix + name, 0, b"of a test", b"{}"))

    return piece


async def stored(deployment: SecuredDeployment, *records: Outgoing, position: int | None = None) -> None:
    store = LedgerStore(deployment.cluster, deployment.topics, 0)
    try:
        await store.open()
        await store.commit([*records, Outgoing(deployment.topics.state, 0, b"of a test", None)], position)
    finally:
        await store.close()


def settings(name: str) -> Piece:
    """A worker looks at the settings of a topic before it starts."""

    async def piece(deployment: SecuredDeployment) -> None:
        with KafkaAdminClient(**deployment.cluster.client_settings()) as admin:
            settings_of(admin, [deployment.prefix + name])

    return piece


async def watch(deployment: SecuredDeployment) -> None:
    """`watch` follows the estimates."""

    class Seen(Exception):
        pass

    class Once(LatestEstimates):
        def take(self, data: bytes) -> Any:
            raise Seen

    topics = deployment.topics
    with suppress(Seen):
        await Once().follow(deployment.cluster, topics.estimates, topics.partitions)


async def roll_up(deployment: SecuredDeployment) -> None:
    """`rollup` reads final windows."""
    topics = deployment.topics
    assert [
        each async for each in records_since(deployment.cluster, topics.windows, range(topics.partitions), 0)
    ]


async def consume_in_group(deployment: SecuredDeployment) -> None:
    """An app of several processes shares the estimates among them."""
    topics = deployment.topics
    consumer = AIOKafkaConsumer(
        topics.estimates,
        **deployment.cluster.client_settings(),
        group_id=f"{topics.reader_groups}app",
        auto_offset_reset="earliest",
    )
    async with started(consumer):
        await consumer.getone()


async def relay_position(deployment: SecuredDeployment) -> None:
    """A relay reads as a member of its group, and commits a position."""
    topics = deployment.topics
    group = RelayGroup(deployment.cluster, topics.uploads, topics.relay_group)
    await group.start()
    try:
        while not group.assigned():
            await group.poll(100)
        await group.committed(0)
        await group.commit(0, Position(0, 0, -1, NO_SETTINGS))
    finally:
        await group.stop()


async def ask_relays(deployment: SecuredDeployment) -> None:
    """A worker asks how far relays have sent; topics that it may not see are left out of the answer."""
    outage = Outage(deployment.cluster, "the test waits")
    relays = Relays(Markers(deployment.cluster, deployment.topics, outage), 1)
    admin = AIOKafkaAdminClient(**deployment.cluster.client_settings())
    try:
        await admin.start()
        await relays._ask(admin)
    finally:
        await admin.close()
    if not relays.is_known:
        raise PermissionError("unauthorized: no position of a relay is seen")


async def compare(deployment: SecuredDeployment) -> None:
    """A producer compares its parameters with the workers'."""
    try:
        await asyncio.to_thread(compared, deployment.cluster, deployment.topics, [])
    except UnreadableError as error:
        raise PermissionError(f"unauthorized: {error}") from None


async def publish(deployment: SecuredDeployment) -> None:
    """A worker publishes what it counts."""
    new = Collection(f"c{uuid4().hex}", KRR.from_epsilon(3, 1.0))
    topic = deployment.topics.collections
    if trouble := await CollectionPublisher(deployment.cluster, topic, [new], 1).publish():
        raise PermissionError(f"unauthorized: {trouble}")


PIECES: dict[tuple[Role, str], Piece] = {
    (Role.PRODUCER, "Write topic reports"): send("reports"),
    (Role.PRODUCER, "Read topic collections"): compare,
    (Role.AGGREGATOR, "Read topic reports"): read("reports"),
    (Role.AGGREGATOR, "Read topic state"): open_ledger,
    (Role.AGGREGATOR, "Read topic counts"): read("counts"),
    (Role.AGGREGATOR, "Read topic estimates"): watch,
    (Role.AGGREGATOR, "Read topic windows"): roll_up,
    (Role.AGGREGATOR, "Write topic reports"): send("reports"),
    (Role.AGGREGATOR, "Write topic state"): open_ledger,
    **{
        (Role.AGGREGATOR, f"Write topic {name}"): checkpoint(name)
        for name in ("counts", "rejected", "estimates", "windows")
    },
    (Role.AGGREGATOR, "Read topic collections"): compare,
    (Role.AGGREGATOR, "Write topic collections"): publish,
    **{
        (Role.AGGREGATOR, f"DescribeConfigs topic {name}"): settings(name)
        for name in ("reports", "state", "counts", "rejected", "estimates", "windows")
    },
    (Role.AGGREGATOR, "Read group aggregator"): checkpoint_position,
    (Role.AGGREGATOR, "Describe topic uploads"): ask_relays,
    (Role.AGGREGATOR, "Describe group relay"): ask_relays,
    (Role.AGGREGATOR, "Write transactional ids aggregator-*"): open_ledger,
    (Role.READER, "Read topic estimates"): watch,
    (Role.READER, "Read topic windows"): roll_up,
    (Role.READER, "Read groups reader-*"): consume_in_group,
    (Role.EDGE, "Write topic uploads"): send("uploads"),
    **{
        (Role.RELAY, f"Write topic {name}"): send(name) for name in ("uploads", "reports", "rejected-uploads")
    },
    (Role.RELAY, "Read topic uploads"): read("uploads"),
    (Role.RELAY, "DescribeConfigs topic uploads"): settings("uploads"),
    (Role.RELAY, "Read group relay"): relay_position,
}


def run(piece: Piece, deployment: SecuredDeployment, seconds: float = PIECE_SECONDS) -> BaseException | None:
    """What it raises, if anything."""

    async def bounded() -> None:
        async with asyncio.timeout(seconds):
            await piece(deployment)

    try:
        asyncio.run(bounded())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is looked at
        return error
    return None


def take_away(admin: KafkaAdminClient, user: str, permission: Permission) -> None:
    pattern = permission.pattern
    exactly = ACLFilter(
        f"User:{user}",
        "*",
        permission.operation,
        ACLPermissionType.ALLOW,
        ResourcePatternFilter(pattern.resource_type, pattern.resource_name, pattern.pattern_type),
    )
    ((_, gone, _),) = admin.delete_acls([exactly])
    assert len(gone) == 1
    assert wait_until(lambda: not admin.describe_acls(exactly)[0])


@pytest.mark.all
@pytest.mark.parametrize("role", but_for({Role.PRODUCER, Role.AGGREGATOR}, Role, pytest.mark.nightly))
def test_every_permission_is_needed_and_checked(
    principals: Principals, secured_broker: SecuredBroker, role: Role
) -> None:
    deployment, topics = principals.by_role[role], principals.topics
    planned = permissions_of(role, topics)
    named = {str(each).replace(topics.prefix, ""): each for each in planned}
    assert {(role, name) for name in named} == {key for key in PIECES if key[0] is role}
    with (
        KafkaAdminClient(**secured_broker.admin_settings()) as admin,
        KafkaAdminClient(**deployment.cluster.client_settings()) as own,
    ):
        assert missing(own, topics, planned) == []
        for piece in dict.fromkeys(PIECES[role, name] for name in named):
            assert run(piece, deployment) is None, piece.__doc__
        for name, permission in named.items():
            take_away(admin, deployment.user, permission)
            try:
                assert wait_until(lambda: permission in missing(own, topics, planned)), name  # noqa: B023
                lacks = missing(own, topics, planned)
                assert {each.name for each in lacks} == {permission.name}, name
                is_hidden = topic_operations(own, [permission.name]) == {permission.name: set()}
                waits = HIDDEN_SECONDS if is_hidden else PIECE_SECONDS
                failure = run(PIECES[role, name], deployment, waits)
            finally:
                acl_setup.allow(admin, topics, {role: [deployment.user]})
            is_refused = "uthoriz" in repr(failure)
            assert is_refused or (is_hidden and isinstance(failure, TimeoutError)), (name, failure)
