"""Check that a ledger could be written, by a transaction on `state` that is aborted.

A second producer with the same transactional id ends it, as the next owner of a partition would; then the
first one must be fenced, and a reader must skip its record.

Rule: no worker uses this transactional id, so no worker is fenced; nobody sees the record, since readers of
`state` read only what was committed. The fenced producer tries to abort, so nothing is committed if it may.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced
from aiokafka.structs import RecordMetadata
from kafka import KafkaAdminClient

from deniable.cluster.existing_topics.of_aiokafka import create_no_topics
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import Role
from deniable.cluster.reading.consumer import assigned_consumer
from deniable.deploy.cluster.doctor.brokers import outage_finding
from deniable.deploy.cluster.doctor.case import Append, Case, NotUsedError, StepAnswer

TRANSACTION_MILLISECONDS = 10_000  # if we are killed, readers of those partitions wait this long
KEY = b"doctor"
LOG_APPEND_TIME = 1
FETCH_MILLISECONDS = 100
READ_SECONDS = 1.0
SLOW = (
    "run it again: a new cluster creates __transaction_state at its first transaction; if that does not "
    "help, look at the brokers' logs"
)


def transactions(case: Case, seconds: float) -> StepAnswer:
    """Write a record to each leader of `state` in a transaction that is aborted; note what that proves."""
    if case.role is not Role.AGGREGATOR:
        raise NotUsedError(f"{with_article(case.role)} has none")
    topic = case.configuration.topics.state
    if not (led := _by_leader(case)):
        return StepAnswer([Finding(f"no partition of {topic} has a leader", "")])
    try:
        case.appends = asyncio.run(_try(case, led, seconds))
    except ProducerFenced:
        return StepAnswer([Finding("another doctor ran at the same time", "run it again")])
    except TimeoutError:
        if case.away:
            raise
        return StepAnswer([Finding(f"no transaction on {topic} within {seconds:.1f} s", SLOW)])
    except KafkaError as error:
        if outage_finding(error, case.away):
            raise
        case.proven["transactions"] = False
        problem = f"no transaction on {topic}: {error!r}"
        return StepAnswer([Finding(problem, "look at the broker's log")])
    return StepAnswer([], "one was begun, written to and aborted")


def _by_leader(case: Case) -> dict[int, int]:
    """Return a partition of `state` by leader, that of partition 0 first."""
    admin = KafkaAdminClient(**case.cluster.client_settings())
    try:
        (described,) = admin.describe_topics([case.configuration.topics.state])
    finally:
        admin.close()
    led: dict[int, int] = {}
    for each in sorted(described["partitions"], key=lambda each: int(each["partition_index"])):
        if each["leader_id"] >= 0:
            led.setdefault(each["leader_id"], each["partition_index"])
    return led


async def _try(case: Case, led: Mapping[int, int], seconds: float) -> list[Append]:
    first, second = _producer(case), _producer(case)
    try:
        async with asyncio.timeout(seconds):
            await first.start()
            await first.begin_transaction()
            asked = case.clock()

            async def append(partition: int) -> tuple[RecordMetadata, float]:
                topic = case.configuration.topics.state
                return await first.send_and_wait(topic, None, key=KEY, partition=partition), case.clock()

            written = dict(zip(led, await asyncio.gather(*map(append, led.values())), strict=True))
            await second.start()
            case.proven["transactions"] = True
            case.proven["fencing"] = await _is_fenced(first)
            records = [record for record, _ in written.values()]
            case.proven["append times"] = all(each.timestamp_type == LOG_APPEND_TIME for each in records)
            with suppress(TimeoutError):  # another transaction on `state` may hold readers up
                async with asyncio.timeout(READ_SECONDS):
                    case.proven["read_committed"] = not await _is_read(case, records[0])
            await first.stop()
            await second.stop()
    except BaseException:
        for each in (first, second):
            await each.client.close()  # without waiting for unsent records
        raise
    return [
        Append(broker, record.timestamp / 1000, asked, answered)
        for broker, (record, answered) in written.items()
    ]


def _producer(case: Case) -> "AIOKafkaProducer[bytes, bytes]":
    producer: AIOKafkaProducer[bytes, bytes] = AIOKafkaProducer(
        **case.cluster.client_settings(),
        transactional_id=f"{case.configuration.topics.transactional_ids}doctor",
        transaction_timeout_ms=TRANSACTION_MILLISECONDS,
    )
    create_no_topics(producer.client)
    return producer


async def _is_fenced(producer: "AIOKafkaProducer[bytes, bytes]") -> bool:
    try:
        await producer.abort_transaction()
    except ProducerFenced:
        return True
    return False


async def _is_read(case: Case, aborted: RecordMetadata) -> bool:
    """Whether a reader of committed records gets this one."""
    source = TopicPartition(aborted.topic, aborted.partition)
    async with assigned_consumer(
        case.cluster, [source], fetch_wait_milliseconds=FETCH_MILLISECONDS
    ) as consumer:
        consumer.seek(source, aborted.offset)
        while await consumer.position(source) <= aborted.offset:
            fetched = await consumer.getmany(source, timeout_ms=FETCH_MILLISECONDS)
            if any(each.offset == aborted.offset for each in fetched.get(source, [])):
                return True
    return False
