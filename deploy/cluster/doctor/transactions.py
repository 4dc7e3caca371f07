"""Check that a ledger could be written, by a transaction on `state` that is aborted.

Rule: no worker uses this transactional id, so no worker is fenced; nobody sees the record, since readers of
`state` read only what was committed.
"""

import asyncio
from collections.abc import Mapping

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerFenced
from kafka import KafkaAdminClient

from deniable.cluster.existing_topics.of_aiokafka import create_no_topics
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.doctor.brokers import outage_finding
from deniable.deploy.cluster.doctor.case import Append, Case, NotUsedError, StepAnswer

TRANSACTION_MILLISECONDS = 10_000  # if we are killed, readers of those partitions wait this long
KEY = b"doctor"
SLOW = (
    "run it again: a new cluster creates __transaction_state at its first transaction; if that does not "
    "help, look at the brokers' logs"
)


def transactions(case: Case, seconds: float) -> StepAnswer:
    """Begin a transaction, write a record to each leader of `state`, and abort it; note their clocks."""
    if case.role is not Role.AGGREGATOR:
        raise NotUsedError(f"{with_article(case.role)} has none")
    topic = case.configuration.topics.state
    if not (led := _by_leader(case)):
        return StepAnswer([Finding(f"no partition of {topic} has a leader", "")])
    try:
        case.appends = asyncio.run(_abort_one(case, led, seconds))
    except ProducerFenced:
        return StepAnswer([Finding("another doctor ran at the same time", "run it again")])
    except TimeoutError:
        if case.away:
            raise
        return StepAnswer([Finding(f"no transaction on {topic} within {seconds:.1f} s", SLOW)])
    except KafkaError as error:
        if outage_finding(error, case.away):
            raise
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


async def _abort_one(case: Case, led: Mapping[int, int], seconds: float) -> list[Append]:
    names = case.configuration.topics
    producer: AIOKafkaProducer[bytes, bytes] = AIOKafkaProducer(
        **case.cluster.client_settings(),
        transactional_id=f"{names.transactional_ids}doctor",
        transaction_timeout_ms=TRANSACTION_MILLISECONDS,
    )
    create_no_topics(producer.client)
    try:
        async with asyncio.timeout(seconds):
            await producer.start()
            await producer.begin_transaction()
            asked = case.clock()

            async def append(broker: int, partition: int) -> Append:
                written = await producer.send_and_wait(names.state, None, key=KEY, partition=partition)
                return Append(broker, written.timestamp / 1000, asked, case.clock())

            appends = await asyncio.gather(*(append(*each) for each in led.items()))
            await producer.abort_transaction()
            await producer.stop()
    except BaseException:
        await producer.client.close()  # without waiting for unsent records
        raise
    return appends
