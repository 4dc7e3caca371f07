"""Check that a ledger could be written, by a transaction on `state` that is aborted.

Rule: no worker uses this transactional id, so no worker is fenced; nobody sees the record, since readers of
`state` read only what was committed.
"""

import asyncio

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerFenced

from deniable.cluster.existing_topics.of_aiokafka import create_no_topics
from deniable.cluster.finding import Finding
from deniable.cluster.permissions.findings import with_article
from deniable.cluster.permissions.roles import Role
from deniable.deploy.cluster.doctor.case import Case, NotUsedError, StepAnswer

TRANSACTION_MILLISECONDS = 10_000  # if we are killed, readers of that partition wait this long
KEY = b"doctor"


def transactions(case: Case, seconds: float) -> StepAnswer:
    """Begin a transaction, write into partition 0 of `state`, and abort it; note the broker's clock."""
    if case.role is not Role.AGGREGATOR:
        raise NotUsedError(f"{with_article(case.role)} has none")
    try:
        case.appended = asyncio.run(_abort_one(case, seconds))
    except ProducerFenced:
        return StepAnswer([Finding("another doctor ran at the same time", "run it again")])
    except KafkaError as error:
        problem = f"no transaction on {case.configuration.topics.state}: {error!r}"
        return StepAnswer([Finding(problem, "look at the broker's log")])
    return StepAnswer([], "one was begun, written to and aborted")


async def _abort_one(case: Case, seconds: float) -> tuple[float, float]:
    """Return when the record was appended and when we asked for it, both unix seconds."""
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
            began = case.clock()
            written = await producer.send_and_wait(names.state, None, key=KEY, partition=0)
            asked = (began + case.clock()) / 2
            await producer.abort_transaction()
            await producer.stop()
    except BaseException:
        await producer.client.close()  # without waiting for unsent records
        raise
    return written.timestamp / 1000, asked
