"""Recounts what the log still holds into an empty `state`, under the terms that `counts` still records.

Rule 1: the first transaction deletes what the former ledger published in `counts`, and resets its progress
there. So no estimate mixes old and new counts while the ledger catches up.
Rule 2: the last transaction notes which log the ledger counts. Workers refuse a ledger without that note,
so none continues an interrupted rebuild; the next rebuild begins it again.
Rule 3: nothing that stands is published again. A rejection that is not in `rejected` is published in the
transaction that moves the position past it. Workers publish the estimates whose packs have changed.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.outcomes import PackOutcomes
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.ledger.terms import terms_at, terms_of
from deniable.aggregator.ledger.terms_update import TermsError
from deniable.aggregator.maintenance.ledger_changes import MaintenanceError
from deniable.aggregator.maintenance.ledger_reader import log_start, progress_in, reader_of
from deniable.aggregator.maintenance.recorded_counts import RecordedCounts, recorded_counts
from deniable.aggregator.maintenance.standing_results import RejectedOffsets, rejected_offsets, standing_notes
from deniable.aggregator.partition.checkpoint import moved, note_row
from deniable.aggregator.partition.ledger_checks import decoded
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.reading.partition_reader import read_rows

COMMIT_RECORDS = 10_000
KEPT = {row_keys.SingleKey.GENESIS, row_keys.SingleKey.OWNER}


class Rebuilt(NamedTuple):
    """One partition after its rebuild.

    Parameters
    ----------
    records : number of records recounted.
    unrecorded : names of the collections that `counts` has no terms of, in alphabetical order: all their
        windows were counted under the terms of the collection file.
    disagreement : why workers will not accept the collection file, with the remedy; empty if they will.
    """

    records: int
    unrecorded: Sequence[str] = ()
    disagreement: str = ""


async def rebuild(deployment: Deployment) -> dict[int, Rebuilt]:
    """Recount the log into the partitions of `state` that have lost their ledger.

    Other partitions are unchanged. Rows written by a worker that did not notice the loss, or by an
    interrupted rebuild, are deleted.

    Records count under the terms recorded in `counts`, retirements included; collections without recorded
    terms, under those of the file from the first record on. The file's changes apply from the end of the log
    on, as if a worker opened the ledger there. Windows that may lack records, where the log no longer begins
    at offset 0, get no final estimate.

    Memory: that of a worker, and one bit for each offset of the logs recounted.

    Returns
    -------
    What was rebuilt, by partition.

    Raises
    ------
    MaintenanceError if no ledger is lost; RowError if a row of `counts` or `state` cannot be read;
    KafkaError, also if a worker takes a ledger over meanwhile.
    """
    topics = deployment.topics
    lost = [partition for partition in range(topics.partitions) if await _seems_lost(deployment, partition)]
    rebuilt: dict[int, Rebuilt] = {}
    if lost:
        recorded = await recorded_counts(deployment, lost)
        rejected = await rejected_offsets(deployment, lost)
        for each in lost:
            if found := await _rebuild(deployment, recorded.pop(each), rejected.pop(each)):
                rebuilt[each] = found
    if not rebuilt:
        raise MaintenanceError(
            f"no ledger of {topics.state} is lost; to count all again, stop all workers, delete the topic "
            f"{topics.state}, and run deniable topics create before this"
        )
    return rebuilt


async def _seems_lost(deployment: Deployment, partition: int) -> bool:
    """Whether a broker shows no ledger; one that is cut off from the others may lack rows of a whole one."""
    committed = await LedgerStore(deployment.cluster, deployment.topics, partition).committed()
    stored = await read_rows(deployment.cluster, deployment.topics.state, partition)
    return _is_lost(decoded(deployment, partition, stored), committed)


def _is_lost(found: Mapping[row_keys.Key, bytes], committed: int | None) -> bool:
    if row_keys.SingleKey.GENESIS not in found or found.keys() <= KEPT:
        return True
    return progress_in(found).position < (committed or 0)


async def _rebuild(
    deployment: Deployment, recorded: RecordedCounts, rejected: RejectedOffsets
) -> Rebuilt | None:
    """Rebuild one ledger; None, and nothing is deleted, if it is whole when read to a proven end."""
    topics, partition = deployment.topics, recorded.source
    start, append_ms = await log_start(deployment, partition)
    ledger = Ledger(partition, topics.partitions)
    unrecorded = {name: of for name, of in deployment.collections.items() if name not in recorded.terms}
    ledger.adopt(terms_at(recorded.terms, start) | {name: terms_of(of) for name, of in unrecorded.items()})
    store = LedgerStore(deployment.cluster, topics, partition)
    try:
        committed = await store.committed()
        found = decoded(deployment, partition, await store.open())
        if not _is_lost(found, committed):
            return None
        deleted = [row_keys.encode_key(key) for key in found if key is not row_keys.SingleKey.OWNER]
        if start:
            ledger.pass_over(start, append_ms or store.opened_ms)
        begin = [Outgoing(topics.state, partition, key, None) for key in deleted]
        begin += recorded.withdrawn(deployment, ledger.position)
        await store.commit(begin + moved(ledger, topics), ledger.position)
        records = await _count(deployment, ledger, store, rejected)
        disagreement = _agree(deployment, ledger)
        notes = await standing_notes(deployment, partition, ledger.terms, ledger.closed_until_ms)
        end = [note_row(topics, partition, *each) for each in notes.items()]
        genesis = row_keys.encode_key(row_keys.SingleKey.GENESIS), row_values.encode_genesis(deployment.log)
        end.append(Outgoing(topics.state, partition, *genesis))
        await store.commit(end + moved(ledger, topics), ledger.position)
        await store.close_visibly()  # else a comparison that follows may not see it
    finally:
        await store.close()
    return Rebuilt(records, sorted(each.name for each in unrecorded.values()), disagreement)


def _agree(deployment: Deployment, ledger: Ledger) -> str:
    """Adopt the collection file, unless it is incompatible with the ledger; then say why."""
    try:
        ledger.agree(deployment.collections, deployment.revision)
    except TermsError as error:
        return str(error)
    return ""


async def _count(
    deployment: Deployment, ledger: Ledger, store: LedgerStore, rejected: RejectedOffsets
) -> int:
    records = uncommitted = 0
    names = [each.name for each in deployment.collections.values()]
    outcomes = PackOutcomes()

    async def commit() -> None:
        new = [each for each in ledger.drain_refusals() if each.offset not in rejected]
        await store.commit(moved(ledger, deployment.topics, new, outcomes.same_names), ledger.position)
        outcomes.same_names.clear()

    async with reader_of(deployment, ledger.partition) as reader:
        async for batch in reader.batches_until_end():
            run = Run.of(batch)
            for number, rejection in ledger.apply_run(run).rejections:
                outcomes.name_rejection(int(run.offsets[number]), rejection, run.headers_of(number), names)
            records += len(batch)
            uncommitted += len(batch)
            if uncommitted >= COMMIT_RECORDS:
                await commit()
                uncommitted = 0
        ledger.pass_hole(await reader.position())
    await commit()
    return records
