"""What an operator does to ledgers by command: accept a loss, retire a collection.

Rule: each takes a ledger over as a worker does, which fences its owner; the owner opens the ledger anew and
goes on with what was done here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

from aiokafka.errors import ProducerFenced

from aggregator.deployment import Deployment
from aggregator.ledger import row_keys, row_values
from aggregator.ledger.ledger import Ledger
from aggregator.maintenance.ledger_reader import ledger_rows, log_start, progress_in, terms_in
from aggregator.partition.checkpoint import moved
from aggregator.partition.ledger_checks import decoded, restored
from aggregator.partition.ledger_store import LedgerStore
from estimators.errors import DeniableError

FENCED_TRIES = 10
Done = TypeVar("Done")


class MaintenanceError(DeniableError, RuntimeError):
    """There is nothing to do, or it must not be done; the message says why."""


async def accept_loss(deployment: Deployment) -> dict[int, int]:
    """Let ledgers go on at the start of the log where retention has moved it beyond their position.

    Windows that may have lost records get no final estimate any more. Ledgers without a loss are left alone.

    Returns
    -------
    By partition, the number of offsets that were deleted uncounted.

    Raises
    ------
    KafkaError; LedgerRefusedError or RowError if a ledger cannot be gone on with.
    """
    lost = {}
    for partition in range(deployment.topics.partitions):
        if offsets := await _until_written(partial(_passed_over, deployment, partition)):
            lost[partition] = offsets
    return lost


async def retire(deployment: Deployment, name: str) -> dict[int, int]:
    """Turn away, from here on, the packs of a collection that the collection file no longer holds.

    What was counted stays until its windows die. A collection whose parameters have changed is another one of
    the same name: all that the file does not hold are retired. What is retired already stays so, and is told
    again unless the file holds that name.

    Returns
    -------
    By partition, the offset from which on they are turned away.

    Raises
    ------
    MaintenanceError if no such collection is counted, or the file still holds it or is no newer; KafkaError;
    LedgerRefusedError or RowError if a ledger cannot be gone on with.
    """
    offsets: dict[int, int] = {}
    ended = False
    for partition in range(deployment.topics.partitions):
        offset, is_new = await _until_written(partial(_turned_away, deployment, partition, name))
        ended |= is_new
        if offset is not None:
            offsets[partition] = offset
    if not ended and any(collection.name == name for collection in deployment.collections.values()):
        raise MaintenanceError(
            f"the collection file holds '{name}', and no other of that name is counted; to end it, take it "
            f"out first, and raise revision"
        )
    if not offsets:
        raise MaintenanceError(f"no collection '{name}' is counted")
    return offsets


async def _turned_away(deployment: Deployment, partition: int, name: str) -> tuple[int | None, bool]:
    """From which offset on a collection's packs are turned away, if they are, and whether that is new."""
    found = await ledger_rows(deployment, partition)
    named = {fingerprint: terms for fingerprint, terms in terms_in(found).items() if terms.name == name}
    ending = [each for each, terms in named.items() if terms.until is None]
    ending = [each for each in ending if each not in deployment.collections]
    if not ending:
        return max((terms.until for terms in named.values() if terms.until is not None), default=None), False
    _check_raised(deployment, found)
    async with _taken(deployment, partition) as (store, ledger):
        for fingerprint in ending:
            ledger.retire(fingerprint)
        await store.commit(moved(ledger, deployment.topics), ledger.position)
        return ledger.position, True


async def _passed_over(deployment: Deployment, partition: int) -> int:
    """How many lost offsets this ledger was let go on behind."""
    start, append_ms = await log_start(deployment, partition)
    found = await ledger_rows(deployment, partition)
    if start <= progress_in(found).position:
        return 0
    async with _taken(deployment, partition) as (store, ledger):
        if start <= ledger.position:  # somebody else was faster
            return 0
        lost = start - ledger.position
        ledger.pass_over(start, append_ms or store.opened_ms)
        await store.commit(moved(ledger, deployment.topics), ledger.position)
        return lost


async def _until_written(change: Callable[[], Awaitable[Done]]) -> Done:
    """Do it again where its owner, who opens a ledger that it cannot go on with every second, was faster."""
    for _ in range(FENCED_TRIES - 1):
        with suppress(ProducerFenced):
            return await change()
    return await change()


def _check_raised(deployment: Deployment, found: dict[row_keys.Key, bytes]) -> None:
    """Check that the file is a newer one: whoever has just mistyped an epsilon must not end a collection."""
    counted = found.get(row_keys.SingleKey.REVISION)
    latest = 0 if counted is None else row_values.decode_revision(counted)
    if counted is not None and deployment.revision <= latest:
        raise MaintenanceError(
            f"revision must be above {latest}, that of the file that workers have counted with, "
            f"got {deployment.revision}: raise it in the file without the collection first"
        )


@asynccontextmanager
async def _taken(deployment: Deployment, partition: int) -> AsyncIterator[tuple[LedgerStore, Ledger]]:
    """A ledger that is ours until another owner opens it: it cannot be written any more then."""
    store = LedgerStore(deployment.cluster, deployment.topics, partition)
    try:
        committed = await store.committed()
        found = decoded(deployment, partition, await store.open())
        yield store, restored(deployment, partition, found, committed)
    finally:
        await store.close()
