"""Ledger changes by command: accept a loss, retire a collection.

Rule: each command takes a ledger over like a worker, which fences its owner; the owner reopens the ledger and
continues with the change.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from difflib import get_close_matches
from functools import partial
from typing import TypeVar

from aiokafka.errors import ProducerFenced

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.runs.run import UNKNOWN_EPOCH
from deniable.aggregator.maintenance.ledger_reader import (
    lasting,
    ledger_rows,
    log_start,
    progress_in,
    reader_of,
    terms_in,
)
from deniable.aggregator.partition.checkpoint import moved
from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.ledger_checks import decoded, restored
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.estimators.errors import DeniableError

FENCED_TRIES = 10
Done = TypeVar("Done")


class MaintenanceError(DeniableError, RuntimeError):
    """There is nothing to change, or it must not be changed; the message says why."""


async def accept_loss(deployment: Deployment) -> dict[int, str]:
    """Continue ledgers whose log has lost records: at its start if retention has moved that past them.

    If the log has lost records that were counted, at their position, or where it ends now. Windows that may
    have lost records get no final estimate. Ledgers without a loss are unchanged.

    Returns
    -------
    What was lost and where counting continues, by partition.

    Raises
    ------
    KafkaError; LedgerRefusedError or RowError if a ledger cannot be continued.
    """
    lost = {}
    for partition in range(deployment.topics.partitions):
        if loss := await _retry_when_fenced(partial(_pass_over_loss, deployment, partition)):
            lost[partition] = loss
    return lost


async def retire(deployment: Deployment, name: str) -> dict[int, int]:
    """Reject, from now on, packs of a collection that the collection file no longer holds.

    Its counts stay until their windows die. A collection with changed parameters is another one of the same
    name: all that the file does not hold are retired. Collections retired before stay retired, and are
    reported again unless the file holds that name.

    Returns
    -------
    Offset from which their packs are rejected, by partition.

    Raises
    ------
    MaintenanceError if no such collection is counted, or the file still holds it or is no newer; KafkaError;
    LedgerRefusedError or RowError if a ledger cannot be continued.
    """
    offsets: dict[int, int] = {}
    ended, known = False, set[str]()
    for partition in range(deployment.topics.partitions):
        offset, is_new = await _retry_when_fenced(partial(_retire_in, deployment, partition, name, known))
        ended |= is_new
        if offset is not None:
            offsets[partition] = offset
    if not ended and any(collection.name == name for collection in deployment.collections.values()):
        raise MaintenanceError(
            f"'{name}' is still in the collection file, and no older collection of that name is counted; "
            f"to end it, first remove it from the file and raise revision"
        )
    if not offsets:
        near = get_close_matches(name, known, 1)
        guess = f"; did you mean '{near[0]}'?" if near else ""
        raise MaintenanceError(f"no collection '{name}' is counted{guess}")
    return offsets


async def _retire_in(
    deployment: Deployment, partition: int, name: str, known: set[str]
) -> tuple[int | None, bool]:
    """Offset from which a collection's packs are rejected, or None; and whether that is new.

    Adds the names that the ledger counts to `known`.
    """
    found = await ledger_rows(deployment, partition)
    counted = terms_in(found)
    known |= {terms.name for terms in counted.values()}
    named = {fingerprint: terms for fingerprint, terms in counted.items() if terms.name == name}
    ending = [each for each, terms in named.items() if terms.until is None]
    ending = [each for each in ending if each not in deployment.collections]
    if not ending:
        return max((terms.until for terms in named.values() if terms.until is not None), default=None), False
    _check_raised(deployment, found)
    async with _taken_over(deployment, partition) as (store, ledger):
        for fingerprint in ending:
            ledger.retire(fingerprint)
        await store.commit(moved(ledger, deployment.topics), ledger.position)
        return ledger.position, True


async def _pass_over_loss(deployment: Deployment, partition: int) -> str:
    """Continue this ledger past what its log has lost; say what, empty if nothing."""
    start, append_ms = await log_start(deployment, partition)
    position = progress_in(await ledger_rows(deployment, partition)).position
    if start <= position and not await lasting(partial(_is_replaced, deployment, partition)):
        return ""
    async with _taken_over(deployment, partition) as (store, ledger):
        lost, end = start - ledger.position, await _end_of_log(deployment, partition)
        if lost > 0:
            ledger.pass_over(start, append_ms or store.opened_ms)
            loss = f"{lost} offsets were deleted uncounted; counting continues behind them"
        elif start > position:  # another command was faster
            return ""
        else:
            ledger.pass_over(min(ledger.position, end), store.opened_ms)
            loss = f"records that were counted are no longer there; counting continues at {ledger.position}"
        await store.commit(moved(ledger, deployment.topics), ledger.position)
        return loss


async def _is_replaced(deployment: Deployment, partition: int) -> bool:
    """Whether the log ends before what was counted, or has another record than the last counted one."""
    store = LedgerStore(deployment.cluster, deployment.topics, partition)
    committed, last = await store.committed() or 0, store.last
    async with reader_of(deployment, partition) as reader:
        if await reader.end_offset() < committed:
            return True
        if last is None or last.offset < await reader.start_offset():
            return False
        reader.seek(last.offset)
        async for record in reader.until_end():
            return not last.is_same(LastRecord(record.offset, UNKNOWN_EPOCH, record.timestamp))
    return True


async def _end_of_log(deployment: Deployment, partition: int) -> int:
    async with reader_of(deployment, partition) as reader:
        return await reader.end_offset()


async def _retry_when_fenced(change: Callable[[], Awaitable[Done]]) -> Done:
    """Retry: a ledger's owner that cannot continue reopens it every second, and may fence this command."""
    for _ in range(FENCED_TRIES - 1):
        with suppress(ProducerFenced):
            return await change()
    return await change()


def _check_raised(deployment: Deployment, found: dict[row_keys.Key, bytes]) -> None:
    """Check that the file is newer: a mistyped epsilon must not end a collection."""
    counted = found.get(row_keys.SingleKey.REVISION)
    latest = 0 if counted is None else row_values.decode_revision(counted)
    if counted is not None and deployment.revision <= latest:
        raise MaintenanceError(
            f"revision must be above {latest}, that of the file that workers have counted with, "
            f"got {deployment.revision}: raise it in the file without the collection first"
        )


@asynccontextmanager
async def _taken_over(deployment: Deployment, partition: int) -> AsyncIterator[tuple[LedgerStore, Ledger]]:
    """Take a ledger over; it can be written until another owner opens it."""
    store = LedgerStore(deployment.cluster, deployment.topics, partition)
    try:
        committed = await store.committed()
        found = decoded(deployment, partition, await store.open())
        yield store, restored(deployment, partition, found, committed)
    finally:
        await store.close()
