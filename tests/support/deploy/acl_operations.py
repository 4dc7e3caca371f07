"""Operations that a principal can try with a real client, each with the roles that may do it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    UserScramCredentialUpsertion,
)
from kafka.errors import NoError, UnknownTopicOrPartitionError, for_code
from kafka.protocol.consumer import FetchRequest
from kafka.structs import OffsetAndMetadata

from deniable.cluster.permissions.roles import Role
from deniable.cluster.topics.findings import settings_of
from deniable.deploy.cluster.permissions import quotas as quota_setup
from deniable.deploy.cluster.permissions.acls import AclError
from deniable.protocol.topic_names import Topics
from tests.support.brokers.secured.deployments import SecuredDeployment

PATIENCE_SECONDS = 60.0
EVERYBODY_ELSE = "somebody"


class Attempt(NamedTuple):
    """The outcome of one attempt."""

    error: BaseException | None

    @property
    def is_allowed(self) -> bool:
        return self.error is None

    @property
    def is_refused(self) -> bool:
        """Whether the broker refused it or hides the topic; a timeout or another error is no refusal."""
        if isinstance(self.error, UnknownTopicOrPartitionError):  # of existing topics
            return True
        return isinstance(self.error, PermissionError | AclError) or "uthoriz" in repr(self.error)

    def __str__(self) -> str:
        return "**yes**" if self.error is None else "refused"


@asynccontextmanager
async def started(client: "AIOKafkaConsumer | AIOKafkaProducer[bytes, bytes]") -> AsyncIterator[None]:
    """Start a client and stop it even if its start fails, which its context manager does not do."""
    try:
        await client.start()
        yield
    finally:
        await client.stop()


class Tools:
    """Clients of one principal."""

    def __init__(self, deployment: SecuredDeployment) -> None:
        self.cluster = deployment.cluster
        self.topics = deployment.topics
        self.admin = KafkaAdminClient(**self.cluster.client_settings())

    async def write(self, topic: str) -> None:
        async with AIOKafkaProducer(**self.cluster.client_settings()) as producer:
            await producer.send_and_wait(topic, b"of a test", key=b"of a test", partition=0)

    async def read(self, topic: str) -> None:
        """Ask for a topic directly: Kafka's clients wait for a hidden topic instead of reporting it."""
        wanted = FetchRequest.FetchTopic(
            topic=topic,
            partitions=[
                FetchRequest.FetchTopic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
            ],
        )
        request = FetchRequest(max_wait_ms=0, min_bytes=0, topics=[wanted], max_version=12)
        manager = self.admin._manager
        answer = await asyncio.to_thread(manager.run, manager.send, request)
        code = answer.responses[0].partitions[0].error_code
        if code:
            raise for_code(code)(topic)

    async def join(self, group: str) -> None:
        """Use any topic that the principal may see."""
        seen = self.admin.list_topics()
        async with started(AIOKafkaConsumer(seen[0], **self.cluster.client_settings(), group_id=group)):
            pass

    async def begin_transactions(self, transactional_id: str) -> None:
        settings = self.cluster.client_settings()
        async with started(AIOKafkaProducer(**settings, transactional_id=transactional_id)):
            pass

    async def read_offsets(self, group: str) -> None:
        self.admin.list_group_offsets(group)

    async def commit_offsets(self, group: str) -> None:
        """Commit offsets of a topic that members of the group may read, so only the group matters.

        The coordinator is given, since looking it up would already be refused.
        """
        topic = self.topics.uploads if group == self.topics.relay_group else self.topics.estimates
        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(0, "", -1)}
        (error,) = self.admin.alter_group_offsets(group, offsets, group_coordinator_id=1).values()
        if error is not NoError:
            raise error(group)

    async def delete_group(self, group: str) -> None:
        _raise(str(self.admin.delete_groups([group])))

    async def read_settings(self, topic: str) -> None:
        settings_of(self.admin, [topic])

    async def alter_settings(self, topic: str) -> None:
        wanted = ConfigResource(ConfigResourceType.TOPIC, topic, {"retention.ms": "1000"})
        _raise(str(self.admin.alter_configs([wanted], raise_on_unknown=False)))

    async def read_broker_settings(self, broker: str) -> None:
        asked = ConfigResource(ConfigResourceType.BROKER, broker)
        if not self.admin.describe_configs([asked], config_filter="all").get("broker", {}).get(broker):
            raise PermissionError("not shown: Authorization")

    async def alter_broker_settings(self, broker: str) -> None:
        wanted = ConfigResource(ConfigResourceType.BROKER, broker, {"log.cleaner.threads": "1"})
        _raise(str(self.admin.alter_configs([wanted], raise_on_unknown=False)))

    async def create_topic(self, topic: str) -> None:
        self.admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1}})

    async def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])

    async def add_partitions(self, topic: str) -> None:
        _raise(str(self.admin.create_partitions({topic: 3})))

    async def delete_records(self, topic: str) -> None:
        _raise(str(self.admin.delete_records({TopicPartition(topic, 0): 1})))

    async def allow(self, user: str) -> None:
        rule = ACL(
            f"User:{user}",
            "*",
            ACLOperation.ALL,
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, self.topics.reports),
        )
        _raise(str(self.admin.create_acls([rule])["failed"]))

    async def disallow(self, user: str) -> None:
        ((_, _, error),) = self.admin.delete_acls([_rules_of(user)])
        if error is not NoError:
            raise error(user)

    async def read_permissions(self, user: str) -> None:
        self.admin.describe_acls(_rules_of(user))

    async def change_quota(self, user: str) -> None:
        quota_setup._set(self.admin, user, 1e9)

    async def change_password(self, user: str) -> None:
        wanted = UserScramCredentialUpsertion(user, "SCRAM-SHA-512", "any password", iterations=8192)
        _raise(str({why for why in self.admin.alter_user_scram_credentials([wanted]).values() if why}))


def _rules_of(user: str) -> ACLFilter:
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    return ACLFilter(f"User:{user}", None, ACLOperation.ANY, ACLPermissionType.ANY, anything)


def _raise(answer: str) -> None:
    """Raise the error that kafka-python returns."""
    if "uthoriz" in answer or "needs ALTER permission" in answer:
        raise PermissionError(answer)


Operation = Callable[[Tools], Awaitable[None]]
NOBODY: tuple[Role, ...] = ()


def operations(topics: Topics) -> dict[str, tuple[tuple[Role, ...], Operation]]:
    """Return operations by name: the roles that may do them, and how to try them."""
    producer, aggregator, reader, edge, relay = Role
    writers: dict[str, tuple[Role, ...]] = {
        topics.reports: (producer, aggregator, relay),
        topics.uploads: (edge, relay),
        topics.rejected_uploads: (relay,),
        **dict.fromkeys((topics.state, topics.counts, topics.rejected), (aggregator,)),
        **dict.fromkeys((topics.estimates, topics.windows), (aggregator,)),
    }
    readers: dict[str, tuple[Role, ...]] = {
        **dict.fromkeys((topics.reports, topics.state, topics.counts), (aggregator,)),
        topics.uploads: (relay,),
        **dict.fromkeys((topics.rejected, topics.rejected_uploads), NOBODY),
        **dict.fromkeys((topics.estimates, topics.windows), (aggregator, reader)),
    }
    groups: dict[str, tuple[Role, ...]] = {
        topics.group: (aggregator,),
        topics.relay_group: (relay,),
        f"{topics.reader_groups}app": (reader,),
        f"{topics.prefix}other": NOBODY,
    }
    ids: dict[str, tuple[Role, ...]] = {
        topics.transactional_id(0): (aggregator,),
        f"{topics.prefix}other-0": NOBODY,
    }
    short = topics.prefix
    found: dict[str, tuple[tuple[Role, ...], Operation]] = {}

    def add(
        what: str, name: str, roles: tuple[Role, ...], do: Callable[[Tools, str], Awaitable[None]]
    ) -> None:
        found[f"{what} `{name.removeprefix(short)}`"] = roles, lambda tools: do(tools, name)

    for name, roles in writers.items():
        add("write to", name, roles, Tools.write)
    for name, roles in readers.items():
        add("read", name, roles, Tools.read)
    settings = {topics.uploads: (relay,), topics.rejected_uploads: NOBODY}
    for name in writers:
        add("read settings of", name, settings.get(name, (aggregator,)), Tools.read_settings)
    for name, roles in groups.items():
        add("join group", name, roles, Tools.join)
        # Workers wait for what relays have sent.
        readers_of = (*roles, aggregator) if name == topics.relay_group else roles
        add("read offsets of group", name, readers_of, Tools.read_offsets)
        add("commit offsets of group", name, roles, Tools.commit_offsets)
        add("delete group", name, NOBODY, Tools.delete_group)
    for name, roles in ids.items():
        add("write transactions as", name, roles, Tools.begin_transactions)
    for name in writers:
        add("alter settings of", name, NOBODY, Tools.alter_settings)
        add("add partitions to", name, NOBODY, Tools.add_partitions)
        add("delete records of", name, NOBODY, Tools.delete_records)
        add("delete topic", name, NOBODY, Tools.delete_topic)
    add("create topic", f"{short}new", NOBODY, Tools.create_topic)
    add("create topic", "elsewhere", NOBODY, Tools.create_topic)
    add("read settings of broker", "1", NOBODY, Tools.read_broker_settings)
    add("alter settings of broker", "1", NOBODY, Tools.alter_broker_settings)
    add("allow", EVERYBODY_ELSE, NOBODY, Tools.allow)
    add("delete permissions of", EVERYBODY_ELSE, NOBODY, Tools.disallow)
    add("read permissions of", EVERYBODY_ELSE, NOBODY, Tools.read_permissions)
    add("change quota of", EVERYBODY_ELSE, NOBODY, Tools.change_quota)
    add("change password of", EVERYBODY_ELSE, NOBODY, Tools.change_password)
    return found


def tried(deployment: SecuredDeployment) -> dict[str, Attempt]:
    """Try each operation as one principal."""
    tools = Tools(deployment)
    try:
        return {name: asyncio.run(_try(tools, do)) for name, (_, do) in operations(deployment.topics).items()}
    finally:
        tools.admin.close()


async def _try(tools: Tools, do: Operation) -> Attempt:
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await do(tools)
    except Exception as error:  # noqa: BLE001 - the caller examines it
        return Attempt(error)
    return Attempt(None)
