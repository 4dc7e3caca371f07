"""Recounts the log from its first record on, and compares with what the workers stored.

Workers may continue meanwhile: stored counts are compared with the recount at their own position.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.maintenance.ledger_reader import (
    lasting,
    ledger_rows,
    log_start,
    progress_in,
    reader_of,
    terms_in,
)
from deniable.aggregator.maintenance.recount import Counted, Recount, StoredCounts, difference, recount
from deniable.aggregator.maintenance.replay_windows import counts_difference, final_counts
from deniable.aggregator.partition.failures import RecordsLostError
from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate
from deniable.cluster.reading.partition_reader import KafkaRecord, RowReader, read_rows
from deniable.estimators.errors import DeniableError
from deniable.protocol.marker import is_marker

WAIT_SECONDS = 60.0
MOST_MARKERS = 1000  # after the last pack


class ReplayError(DeniableError, RuntimeError):
    """The log and the counts cannot be compared."""


@dataclass(frozen=True)
class Comparison:
    """What a replay found.

    Parameters
    ----------
    difference : sum of the absolute differences of all counters: ledgers, published counts, final estimates
        and final counts.
    records : records of `reports` read.
    finals : final estimates compared.
    whole_from : windows that start earlier were not compared, since records of them were deleted; unix
        seconds, 0 if all were.
    foreign : records of `estimates` skipped, since they are not estimates of this version.
    counts : the recount, all partitions merged.
    final_counts : windows whose final counts, in the topic `windows`, were compared.
    """

    difference: int
    records: int
    finals: int
    whole_from: int
    foreign: int
    counts: MergedCounts
    final_counts: int


async def replay(
    deployment: Deployment,
    wait_seconds: float = WAIT_SECONDS,
    tell: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Wait until the workers have counted the current log, then recount and compare.

    Parameters
    ----------
    deployment : whose log and counts.
    wait_seconds : for the workers.
    tell : called with the present step, several times a second while it waits.

    Raises
    ------
    ReplayError if they do not finish in time, or records were lost; LedgerRefusedError if `state` belongs to
    another log.
    """
    tell(f"waiting until workers have counted the log, {wait_seconds:.0f} s at most")
    sources = range(deployment.topics.partitions)
    for source in sources:
        await _check_reachable(deployment, source)
    await _wait_until_counted(deployment, wait_seconds, tell)
    tell("reading what the workers stored")
    finals, foreign = await _final_estimates(deployment)
    claims = [claim for home in sources for claim in await _published_claims(deployment, home)]
    windows = await final_counts(deployment, claims, finals)
    # Ledgers last: their transactions delete from `counts`, so they cover all that is missing there.
    ledgers = [await _ledger_claim(deployment, source) for source in sources]
    apart = records = whole_from = 0
    merged = MergedCounts()
    for source in sources:
        tell(f"recounting partition {source}, the last one is {sources[-1]}")
        mine = [claim for claim in (ledgers[source], *claims) if claim.source == source]
        recounted = await _recounted(deployment, ledgers[source], {claim.position for claim in mine})
        alive = recounted.at[ledgers[source].position]
        apart += sum(difference(claim, recounted, alive, deployment) for claim in mine)
        records += recounted.records
        whole_from = max(whole_from, recounted.whole_from)
        terms = {
            row_keys.TermsKey(name): row_values.encode_terms(of) for name, of in ledgers[source].terms.items()
        }
        for key, value in (terms | alive).items():
            merged.apply(row_keys.with_source(row_keys.encode_key(key), source), value)
        merged.progress[source] = ledgers[source].progress
    whole = [record for record in finals if record.window_start >= whole_from]
    apart += sum(_final_difference(record, merged, deployment) for record in whole)
    kept = {window: counts for window, counts in windows.items() if window[1] >= whole_from}
    apart += sum(counts_difference(*each, merged, deployment.collections) for each in kept.items())
    return Comparison(apart, records, len(whole), whole_from, foreign, merged, len(kept))


async def _recounted(deployment: Deployment, claim: StoredCounts, positions: set[int]) -> Recount:
    """Recount up to these positions; what a broker lacks of that is no difference, however long it does."""
    recounted: list[Recount] = []

    async def lacks() -> int:
        recounted[:] = [await recount(deployment, claim, positions)]
        return max(0, max(positions) - recounted[0].end)

    if await lasting(lacks):
        raise ReplayError(
            f"partition {claim.source} of {deployment.topics.reports} ends at {recounted[0].end}, but is "
            f"counted up to {max(positions)}: the broker that answers is cut off from others, or the log "
            "has lost its end. Run this again once deniable doctor finds nothing"
        )
    return recounted[0]


async def _check_reachable(deployment: Deployment, source: int) -> None:
    """Fail before waiting: a ledger of another log, or lost records."""
    if lost := await lasting(partial(_lost, deployment, source)):
        raise ReplayError(str(lost))


async def _lost(deployment: Deployment, source: int) -> RecordsLostError | None:
    start, _ = await log_start(deployment, source)  # first: workers and retention continue
    position = progress_in(await ledger_rows(deployment, source)).position
    return None if start <= position else RecordsLostError(source, position, start)


async def _wait_until_counted(
    deployment: Deployment, wait_seconds: float, tell: Callable[[str], None]
) -> None:
    try:
        async with asyncio.timeout(wait_seconds):
            for source in range(deployment.topics.partitions):
                await _wait_until_at(deployment, source, await _end_of_packs(deployment, source), tell)
    except TimeoutError:
        position = progress_in(await ledger_rows(deployment, source)).position
        raise ReplayError(
            f"the log is not counted to its end within {wait_seconds:.0f} s: partition {source} is at offset "
            f"{position} of {await _end_offset(deployment, source)}; is a worker running and ready?"
        ) from None


async def _wait_until_at(
    deployment: Deployment, source: int, offset: int, tell: Callable[[str], None]
) -> None:
    progress, position = row_keys.encode_key(row_keys.SingleKey.PROGRESS), 0
    async with RowReader(deployment.cluster, deployment.topics.state, source) as reader:
        while True:
            for record in await reader.poll():
                if record.key != progress or (found := _position(record.value)) is None:
                    continue
                position = found
                if position >= offset:
                    return
            tell(f"waiting for workers: partition {source} is counted up to offset {position} of {offset}")


def _position(progress: bytes | None) -> int | None:
    """Position in a row of progress; None if deleted, or of a newer version: it may be superseded."""
    with suppress(row_values.RowError):
        return None if progress is None else row_values.decode_progress(progress).position
    return None


async def _end_of_packs(deployment: Deployment, source: int) -> int:
    """End of `reports`, before markers that follow the stored position: workers may have ended since."""
    position = progress_in(await ledger_rows(deployment, source)).position
    async with reader_of(deployment, source) as reader:
        end = await reader.end_offset()
        if not 0 < end - position <= MOST_MARKERS:
            return end
        reader.seek(position)
        async for record in reader.until_end():
            if not is_marker(record.value):
                return end
    return position


async def _end_offset(deployment: Deployment, source: int) -> int:
    """End of `reports`; positions reach it beyond transaction markers."""
    async with reader_of(deployment, source) as reader:
        return await reader.end_offset()


async def _ledger_claim(deployment: Deployment, source: int) -> StoredCounts:
    found = await ledger_rows(deployment, source)
    return replace(_claim(source, found, None), terms=terms_in(found))


async def _published_claims(deployment: Deployment, home: int) -> list[StoredCounts]:
    by_source: dict[int, dict[row_keys.Key, bytes]] = {}
    for data, value in (await read_rows(deployment.cluster, deployment.topics.counts, home)).items():
        if row_keys.is_foreign(data, deployment.topics.partitions):
            continue  # workers log a warning
        key, source = row_keys.split_source(data)
        by_source.setdefault(source, {})[key] = value
    return [_claim(source, found, home) for source, found in by_source.items()]


def _claim(source: int, found: dict[row_keys.Key, bytes], home: int | None) -> StoredCounts:
    counted: Counted = {
        key: value
        for key, value in found.items()
        if isinstance(key, row_keys.CountKey | row_keys.RejectedKey)
    }
    return StoredCounts(source, progress_in(found), counted, home)


async def _final_estimates(deployment: Deployment) -> tuple[Sequence[EstimateRecord], int]:
    """Newest final estimate of each window; and the number of foreign records."""
    foreign = 0
    newest: dict[bytes, EstimateRecord] = {}
    topics = deployment.topics
    for partition in range(topics.partitions):
        async with RowReader(deployment.cluster, topics.estimates, partition) as reader:
            async for record in reader.until_end():
                estimate = _estimate_of(record)
                if estimate is None:
                    foreign += 1
                    continue
                if estimate.part > 1:
                    continue  # it repeats part 1's reports and packs
                shown = newest.get(estimate.key)
                if shown is None or estimate.supersedes(shown):
                    newest[estimate.key] = estimate
    return [estimate for estimate in newest.values() if estimate.final], foreign


def _estimate_of(record: KafkaRecord) -> EstimateRecord | None:
    try:
        return decode_estimate(record.value or b"")
    except msgspec.DecodeError:
        return None


def _final_difference(record: EstimateRecord, merged: MergedCounts, deployment: Deployment) -> int:
    """Reports of a final estimate against the recount; 0 when the window's counts are not all kept."""
    window = (int(record.fingerprint, 16), record.window_start)
    collection = deployment.collections.get(window[0])
    packs = merged.packs(window)
    if collection is None or merged.is_dying(window):
        return 0
    return abs(record.reports - merged.totals(window, collection).reports) + abs(record.packs - packs)
