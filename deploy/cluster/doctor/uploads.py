"""Check what only edges and relays need: relays that have begun, are there, and share one secret; origins."""

import asyncio
from collections.abc import Iterable, Mapping

from aiokafka import TopicPartition as Source
from kafka import KafkaAdminClient, OffsetSpec, TopicPartition

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.coordinator import patiently
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.roles import Role
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.config.checks import ANY_ORIGIN, origin_sent
from deniable.config.relay_secret import relay_secret
from deniable.deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer
from deniable.protocol.secrets.secret import SecretError
from deniable.protocol.uploads.relay_position import Position
from deniable.relay.control import ControlError, decode_control, is_control
from deniable.relay.keys import RelayKeys

Bounds = Mapping[int, tuple[int, int]]
OTHER_SECRET = "restore it from a copy: all relays have the same one"  # noqa: S105 - a sentence


def uploads(case: Case, seconds: float) -> StepAnswer:
    """Ask whether relays have begun on every partition; as a relay, also whether one runs, and its secret."""
    topics = case.configuration.topics
    admin = KafkaAdminClient(**case.cluster.client_settings())
    try:
        bounds = _bounds(admin, topics.uploads, topics.partitions)
        found = [each for each in (_not_begun(bounds, topics.uploads, case.role),) if each]
        if case.role is Role.EDGE:
            return StepAnswer(found, "relays have begun on every partition")
        positions = _positions(admin, topics.relay_group, topics.uploads)
        if absent := _absent(admin, topics.relay_group, bounds, positions):
            found.append(absent)
    finally:
        admin.close()
    found += asyncio.run(_of_secret(case, bounds, positions, seconds))
    return StepAnswer(found, "relays have begun on every partition, and have this machine's secret")


def origins(case: Case, _seconds: float) -> StepAnswer:
    """Find entries of allow_origins that no browser sends, as a warning each."""
    section = case.configuration.edge
    if case.role is not Role.EDGE or section is None:
        raise NotUsedError("only an edge with a section edge has any")
    if not section.allow_origins:
        return StepAnswer([], "no page may upload")
    if section.allow_origins == [ANY_ORIGIN]:
        return StepAnswer([], "pages of every site may upload")
    return StepAnswer(_unsent(section.allow_origins), "browsers send origins of this form")


def _unsent(given: Iterable[str]) -> list[Finding]:
    found = []
    for origin in given:
        if (sent := origin_sent(origin)) != origin:
            remedy = "leave it out" if sent is None else f"write {sent}"
            found.append(Finding(f"edge.allow_origins: no browser sends '{origin}'", remedy, is_warning=True))
    return found


def _bounds(admin: KafkaAdminClient, topic: str, partitions: int) -> Bounds:
    """Return first offset, and the one after the last, by partition. Needs only Describe."""
    sources = [TopicPartition(topic, each) for each in range(partitions)]
    first = admin.list_partition_offsets(dict.fromkeys(sources, OffsetSpec.EARLIEST))
    end = admin.list_partition_offsets(dict.fromkeys(sources, OffsetSpec.LATEST))
    return {each.partition: (first[each].offset, end[each].offset) for each in sources}


def _positions(admin: KafkaAdminClient, group: str, topic: str) -> Mapping[int, tuple[int, str]]:
    """Return the relays' committed positions with their metadata, by partition."""
    offsets = patiently(lambda: admin.list_group_offsets(group))[group]
    return {
        source.partition: (found.offset, found.metadata or "")
        for source, found in offsets.items()
        if isinstance(source, TopicPartition) and source.topic == topic and found.offset >= 0
    }


def _not_begun(bounds: Bounds, topic: str, role: Role) -> Finding | None:
    empty = [str(each) for each, (_, end) in bounds.items() if end == 0]
    if not empty:
        return None
    noun = "partition" if len(empty) == 1 else "partitions"
    what = f"no relay has begun on {noun} {', '.join(empty)} of {topic}: edges answer 503 until then"
    return Finding(what, "start deniable relay", is_warning=role is Role.RELAY)


def _absent(
    admin: KafkaAdminClient, group: str, bounds: Bounds, positions: Mapping[int, tuple[int, str]]
) -> Finding | None:
    waiting = sum(
        end - max(first, positions.get(partition, (first, ""))[0])
        for partition, (first, end) in bounds.items()
    )
    described = patiently(lambda: admin.describe_groups([group]))[group]
    if waiting <= 0 or described["members"]:
        return None
    noun = "record waits" if waiting == 1 else "records wait"
    return Finding(f"no relay is in the group {group}, and {waiting:,} {noun}", "start deniable relay")


async def _of_secret(
    case: Case, bounds: Bounds, positions: Mapping[int, tuple[int, str]], seconds: float
) -> list[Finding]:
    """Compare our secret with the one that wrote the settings in force, which a relay does at its start."""
    begun = {partition: first for partition, (first, end) in bounds.items() if end > first}
    if not begun:
        return []
    try:
        keys = RelayKeys(relay_secret(case.configuration, creates=False))
    except SecretError as error:
        return [Finding(str(error), "")]
    topic = case.configuration.topics.uploads
    others = []
    async with asyncio.timeout(seconds):
        for partition, first in begun.items():
            offset = max(first, _settings_offset(positions.get(partition)))
            if await _is_of_another(case.cluster, Source(topic, partition), offset, keys):
                others.append(str(partition))
    if not others:
        return []
    noun = "partition" if len(others) == 1 else "partitions"
    what = f"relays with another secret than this machine's wrote the settings of {noun} {', '.join(others)}"
    return [Finding(f"{what} of {topic}, so a relay here ends with status 3", OTHER_SECRET)]


def _settings_offset(committed: tuple[int, str] | None) -> int:
    """Return where a commit says that settings are; 0 if it says nothing."""
    try:
        return 0 if committed is None else max(0, Position.of(*committed).settings)
    except ValueError:
        return 0


async def _is_of_another(cluster: Cluster, source: Source, offset: int, keys: RelayKeys) -> bool:
    """Whether this record holds settings of relays with another secret."""
    async with assigned_consumer(cluster, [source], committed=False) as consumer:
        consumer.seek(source, offset)
        value = (await consumer.getone()).value or b""
    if not is_control(value):
        return False
    try:
        decode_control(keys, source.partition, value)
    except ValueError:
        return True
    except ControlError:  # of a newer relay, which has this secret
        return False
    return False
