"""Reads a ledger's rows, and the log it counts, without owning either."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.terms import Terms
from deniable.aggregator.partition.ledger_checks import check_genesis, decoded
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.cluster.reading.partition_reader import RowReader, read_rows

SESSION_SECONDS = 20.0  # more than a broker's: a leader that was replaced has an old log until then
AGAIN_SECONDS = 1.0

Found = TypeVar("Found")


async def lasting(ask: Callable[[], Awaitable[Found]]) -> Found:
    """Return what is found for longer than a broker's session lasts; what is false, as soon as that is."""
    deadline = time.monotonic() + SESSION_SECONDS
    while True:
        found = await ask()
        if not found or time.monotonic() > deadline:
            return found
        await asyncio.sleep(AGAIN_SECONDS)


def reader_of(deployment: Deployment, source: int) -> RowReader:
    """A reader of one partition of `reports`, including uncommitted records: they count too."""
    return RowReader(deployment.cluster, deployment.topics.reports, source, committed=False)


async def ledger_rows(deployment: Deployment, partition: int) -> dict[row_keys.Key, bytes]:
    """Current rows of a ledger.

    Raises
    ------
    LedgerRefusedError if `state` is of another log; RowError; KafkaError.
    """
    stored = await read_rows(deployment.cluster, deployment.topics.state, partition)
    found = decoded(deployment, partition, stored)
    committed = None
    if row_keys.SingleKey.GENESIS not in found:
        committed = await LedgerStore(deployment.cluster, deployment.topics, partition).committed()
    check_genesis(deployment, partition, found, committed)
    return found


def terms_in(found: dict[row_keys.Key, bytes]) -> dict[int, Terms]:
    """Terms among the rows of a ledger, by fingerprint."""
    return {
        key.fingerprint: row_values.decode_terms(value)
        for key, value in found.items()
        if isinstance(key, row_keys.TermsKey)
    }


def progress_in(found: Mapping[row_keys.Key, bytes]) -> row_values.LedgerProgress:
    """Progress among the rows of a ledger; zero if there is none."""
    value = found.get(row_keys.SingleKey.PROGRESS)
    return row_values.decode_progress(value) if value else row_values.LedgerProgress()


async def log_start(deployment: Deployment, partition: int) -> tuple[int, int]:
    """First offset in a partition of `reports`, and its append time, unix milliseconds, 0 if empty."""
    async with reader_of(deployment, partition) as reader:
        start = await reader.start_offset()
        async for record in reader.until_end():
            return start, record.timestamp
    return start, 0
