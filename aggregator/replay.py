"""Recounting the log from offset 0, and comparing with what the workers stored.

The recount is the ledger's own pure fold, without Faust, transactions, rebalances or other workers between it
and the log: whatever those lost or doubled shows as a difference. Workers may go on meanwhile: each claim
about the counts is compared with the recount as of the claim's own position.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from aggregator import estimate_record, rows
from aggregator.acceptance import Acceptance
from aggregator.estimate_record import EstimateRecord
from aggregator.ledger import Ledger, check_known
from aggregator.merge import MergedCounts
from aggregator.owner import Deployment
from aggregator.row_reader import Record, RowReader, fold

WAIT_SECONDS = 60.0

Integers = npt.NDArray[np.int64]
Counted = dict[rows.Key, bytes]


class ReplayError(RuntimeError):
    """The log and the counts cannot be compared."""


@dataclass(frozen=True)
class Comparison:
    """What a replay found.

    Parameters
    ----------
    difference : sum of the absolute differences of all counters: ledgers, published counts, final estimates.
    records : records of `reports` that were folded.
    finals : final estimates that were compared.
    counts : the recount, all partitions merged.
    """

    difference: int
    records: int
    finals: int
    counts: MergedCounts


@dataclass(frozen=True)
class Claim:
    """What the workers stored of one source partition, and how far it had counted then.

    `home` is the partition of `counts` that says so, of its own collections only; None is the ledger itself.
    """

    source: int
    progress: rows.Progress
    counted: Counted
    home: int | None = None

    @property
    def position(self) -> int:
        """Next offset to count."""
        return self.progress.position


@dataclass(frozen=True)
class Recount:
    """One source partition folded from offset 0: its counts as of some positions, and how many records."""

    at: Mapping[int, Counted]
    records: int


async def replay(deployment: Deployment, wait_seconds: float = WAIT_SECONDS) -> Comparison:
    """Wait until the workers have counted what is in the log now, then recount and compare.

    Raises
    ------
    ReplayError when they do not get there in time, or the log no longer begins at offset 0.
    """
    sources = range(deployment.topics.partitions)
    await _wait_until_counted(deployment, wait_seconds)
    finals = await _final_estimates(deployment)
    claims = [claim for home in sources for claim in await _published_claims(deployment, home)]
    # Ledgers last: what died leaves `counts` in their transactions, so they know all that is missing there.
    ledgers = [await _ledger_claim(deployment, source) for source in sources]
    difference = records = 0
    merged = MergedCounts()
    for source in sources:
        mine = [claim for claim in (ledgers[source], *claims) if claim.source == source]
        recount = await _recount(deployment, source, {claim.position for claim in mine})
        alive = recount.at[ledgers[source].position]
        difference += sum(_difference(claim, recount, alive, deployment) for claim in mine)
        records += recount.records
        for key, value in alive.items():
            merged.apply(rows.with_source(rows.encode_key(key), source), value)
        merged.progress[source] = ledgers[source].progress
    difference += sum(_final_difference(record, merged, deployment) for record in finals)
    return Comparison(difference, records, len(finals), merged)


async def _wait_until_counted(deployment: Deployment, wait_seconds: float) -> None:
    try:
        async with asyncio.timeout(wait_seconds):
            for source in range(deployment.topics.partitions):
                await _wait_until_at(deployment, source, await _end_offset(deployment, source))
    except TimeoutError:
        raise ReplayError(
            f"the log is not counted to its end within {wait_seconds:.0f} s; is a worker running and ready?"
        ) from None


async def _wait_until_at(deployment: Deployment, source: int, offset: int) -> None:
    progress = rows.encode_key(rows.SingleKey.PROGRESS)
    async with RowReader(deployment.bootstrap_servers, deployment.topics.state, source) as reader:
        async for record in reader.until(
            lambda r: r.key == progress and _progress(r.value).position >= offset
        ):
            del record


async def _end_offset(deployment: Deployment, source: int) -> int:
    """End of `reports`; positions get there beyond the markers that transactions leave at the end."""
    async with _reports(deployment, source) as reader:
        if await reader.start_offset():
            raise ReplayError(
                f"partition {source} of {deployment.topics.reports} no longer begins at offset 0: "
                "retention has deleted what a recount needs"
            )
        return await reader.end_offset()


def _reports(deployment: Deployment, source: int) -> RowReader:
    return RowReader(deployment.bootstrap_servers, deployment.topics.reports, source, committed=False)


async def _rows_of(deployment: Deployment, topic: str, partition: int) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    async with RowReader(deployment.bootstrap_servers, topic, partition) as reader:
        async for record in reader.until_end():
            fold(found, record)
    return found


async def _ledger_claim(deployment: Deployment, source: int) -> Claim:
    stored = await _rows_of(deployment, deployment.topics.state, source)
    found = {rows.decode_key(key): value for key, value in stored.items()}
    for key in found:
        check_known(key, deployment.collections, source)
    return _claim(source, found, None)


async def _published_claims(deployment: Deployment, home: int) -> list[Claim]:
    by_source: dict[int, dict[rows.Key, bytes]] = {}
    for data, value in (await _rows_of(deployment, deployment.topics.counts, home)).items():
        key, source = rows.split_source(data)
        by_source.setdefault(source, {})[key] = value
    return [_claim(source, found, home) for source, found in by_source.items()]


def _claim(source: int, found: dict[rows.Key, bytes], home: int | None) -> Claim:
    progress = _progress(found.get(rows.SingleKey.PROGRESS))
    counted: Counted = {
        key: value for key, value in found.items() if isinstance(key, rows.CountKey | rows.RejectedKey)
    }
    return Claim(source, progress, counted, home)


def _progress(value: bytes | None) -> rows.Progress:
    return rows.decode_progress(value) if value else rows.Progress()


async def _recount(deployment: Deployment, source: int, positions: set[int]) -> Recount:
    ledger = Ledger(Acceptance(deployment.collections, source, deployment.topics.partitions))
    waiting = sorted(positions)
    at: dict[int, Counted] = {}
    records = 0
    async with _reports(deployment, source) as reader:
        async for record in reader.until_end():
            while waiting and waiting[0] <= record.offset:
                at[waiting.pop(0)] = dict(ledger.counted())
            ledger.apply(record.offset, record.timestamp, record.value or b"")
            records += 1
    at.update({position: dict(ledger.counted()) for position in waiting})
    return Recount(at, records)


def _difference(claim: Claim, recount: Recount, alive: Counted, deployment: Deployment) -> int:
    expected = recount.at[claim.position]
    died = expected.keys() - alive.keys()  # after the claim's position: deleted by now, or not yet
    if claim.home is not None:
        topics = deployment.topics
        expected = {
            key: value
            for key, value in expected.items()
            if topics.counts_partition(getattr(key, "fingerprint", 0)) == claim.home
        }
    both = (expected.keys() | claim.counted.keys()) - died
    return sum(_apart(key, expected.get(key), claim.counted.get(key)) for key in both)


def _apart(key: rows.Key, expected: bytes | None, stored: bytes | None) -> int:
    if expected == stored:
        return 0
    if isinstance(key, rows.RejectedKey):
        return abs(_packs(expected) - _packs(stored))
    ours, theirs = _counters(expected), _counters(stored)
    size = max(len(ours), len(theirs))
    return int(np.abs(_padded(ours, size) - _padded(theirs, size)).sum())


def _padded(counters: Integers, size: int) -> Integers:
    return np.pad(counters, (0, size - len(counters)))


def _packs(value: bytes | None) -> int:
    return rows.decode_rejected(value) if value else 0


def _counters(value: bytes | None) -> Integers:
    if value is None:
        return np.zeros(1, dtype=np.int64)
    counters = rows.decode_counters(value)
    return np.array([counters.reports, counters.packs, *counters.counts], dtype=np.int64)


async def _final_estimates(deployment: Deployment) -> Sequence[EstimateRecord]:
    newest: dict[bytes, EstimateRecord] = {}
    topics = deployment.topics
    for partition in range(topics.partitions):
        async with RowReader(deployment.bootstrap_servers, topics.estimates, partition) as reader:
            async for record in reader.until_end():
                estimate = _estimate_of(record, topics.estimates)
                shown = newest.get(estimate.key)
                if shown is None or estimate.supersedes(shown):
                    newest[estimate.key] = estimate
    return [estimate for estimate in newest.values() if estimate.final]


def _estimate_of(record: Record, topic: str) -> EstimateRecord:
    try:
        return estimate_record.decode(record.value or b"")
    except msgspec.DecodeError:
        raise ReplayError(f"offset {record.offset} of {topic} is no estimate of this version") from None


def _final_difference(record: EstimateRecord, merged: MergedCounts, deployment: Deployment) -> int:
    """Reports of a final estimate against the recount; 0 when the window's counts are not all kept."""
    window = (int(record.fingerprint, 16), record.window_start)
    collection = deployment.collections.get(window[0])
    packs = merged.packs(window)
    if collection is None or not packs or merged.is_dying(window, collection):
        return 0
    return abs(record.reports - merged.totals(window, collection).reports) + abs(record.packs - packs)
