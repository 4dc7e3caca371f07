"""Recounts what the log still holds into an empty `state`.

Rule: the first transaction deletes what the former ledger published in `counts`, and resets its progress
there. So no estimate mixes old and new counts while the ledger catches up.
"""

from collections.abc import Iterator

from aggregator.deployment import Deployment
from aggregator.ledger import row_keys, row_values
from aggregator.ledger.ledger import Ledger
from aggregator.maintenance.ledger_changes import MaintenanceError
from aggregator.maintenance.ledger_reader import log_start, reader_of
from aggregator.partition.checkpoint import moved
from aggregator.partition.ledger_checks import decoded
from aggregator.partition.ledger_store import LedgerStore, Outgoing
from aggregator.topics.partition_reader import read_rows

COMMIT_RECORDS = 10_000
KEPT = {row_keys.SingleKey.GENESIS, row_keys.SingleKey.OWNER}


async def rebuild(deployment: Deployment) -> dict[int, int]:
    """Recount the log into the partitions of `state` that have lost their ledger.

    Other partitions are unchanged. Rows written by a worker that did not notice the loss are deleted.

    Collections count under the terms of the file from the first record on. Windows that may lack records,
    where the log no longer begins at offset 0, get no final estimate. After an interruption a worker
    continues from what is stored.

    Returns
    -------
    Number of records recounted, by partition.

    Raises
    ------
    MaintenanceError if no ledger is lost; KafkaError, also if a worker takes a ledger over meanwhile.
    """
    topics = deployment.topics
    empty = [partition for partition in range(topics.partitions) if await _is_lost(deployment, partition)]
    if not empty:
        raise MaintenanceError(
            f"no ledger of {topics.state} is lost; to count all again, stop all workers, delete the topic "
            f"{topics.state}, and run deniable topics create before this"
        )
    return {partition: await _rebuild(deployment, partition) for partition in empty}


async def _is_lost(deployment: Deployment, partition: int) -> bool:
    stored = await read_rows(deployment.cluster, deployment.topics.state, partition)
    keys = decoded(deployment, partition, stored).keys()
    return row_keys.SingleKey.GENESIS not in keys or keys <= KEPT


async def _rebuild(deployment: Deployment, partition: int) -> int:
    topics = deployment.topics
    start, append_ms = await log_start(deployment, partition)
    ledger = Ledger(partition, topics.partitions)
    store = LedgerStore(deployment.cluster, topics, partition)
    try:
        leftovers = [key for key in decoded(deployment, partition, await store.open()) if key not in KEPT]
        if start:
            ledger.pass_over(start, append_ms or store.opened_ms)
        ledger.agree(deployment.collections, deployment.revision)
        deleted = [(row_keys.encode_key(key), None) for key in leftovers]
        genesis = row_keys.encode_key(row_keys.SingleKey.GENESIS), row_values.encode_genesis(deployment.log)
        begin = [Outgoing(topics.state, partition, *row) for row in (*deleted, genesis)]
        begin += await _withdrawn(deployment, ledger)
        await store.commit(begin + moved(ledger, topics), ledger.position)
        return await _count(deployment, ledger, store)
    finally:
        await store.close()


async def _count(deployment: Deployment, ledger: Ledger, store: LedgerStore) -> int:
    records = 0
    async with reader_of(deployment, ledger.partition) as reader:
        async for record in reader.until_end():
            ledger.apply(record.offset, record.timestamp, record.value or b"")
            ledger.drain_refusals()  # the topic `rejected` holds them already
            records += 1
            if records % COMMIT_RECORDS == 0:
                await store.commit(moved(ledger, deployment.topics), ledger.position)
        ledger.skip_markers(await reader.position())
    await store.commit(moved(ledger, deployment.topics), ledger.position)
    return records


async def _withdrawn(deployment: Deployment, ledger: Ledger) -> list[Outgoing]:
    """Records that remove the former ledger's rows from `counts`, and reset its progress there."""
    topics, begun = deployment.topics, row_values.encode_progress(row_values.LedgerProgress(ledger.position))
    progress = row_keys.encode_key(row_keys.SingleKey.PROGRESS)
    withdrawn = []
    for home in range(topics.partitions):
        key = row_keys.with_source(progress, ledger.partition)
        withdrawn.append(Outgoing(topics.counts, home, key, begun))
        stored = await read_rows(deployment.cluster, topics.counts, home)
        withdrawn += (
            Outgoing(topics.counts, home, key, None) for key in _of_source(stored, ledger.partition)
        )
    return withdrawn


def _of_source(stored: dict[bytes, bytes], source: int) -> Iterator[bytes]:
    """Keys of a source partition's rows in `counts`, without progress."""
    for data in stored:
        if row_keys.is_foreign(data, source + 1):
            continue
        key, found = row_keys.split_source(data)
        if found == source and key is not row_keys.SingleKey.PROGRESS:
            yield data
