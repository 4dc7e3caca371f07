"""Recounts a partition of the log, and compares stored counts with the recount.

The recount is the ledger's own pure fold under its recorded terms, without Faust, transactions, rebalances or
other workers: whatever those lost or duplicated shows as a difference. Windows that may have lost records to
retention are not compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.runs.run import Integers
from deniable.aggregator.ledger.terms import Terms, terms_at, untouched_window
from deniable.aggregator.maintenance.ledger_reader import reader_of
from deniable.protocol import wire

Counted = dict[row_keys.Key, bytes]

#: Where workers before 0.2 counted markers, which were unknown to them.
MARKERS_BEFORE = row_keys.RejectedKey(0, 0, wire.MALFORMED)


@dataclass(frozen=True)
class StoredCounts:
    """Stored counts of one source partition, and their progress.

    `home` is the partition of `counts` that holds them, for its own collections only; None for the ledger
    itself, the only one with terms.
    """

    source: int
    progress: row_values.LedgerProgress
    counted: Counted
    home: int | None = None
    terms: Mapping[int, Terms] = field(default_factory=dict)

    @property
    def position(self) -> int:
        """Next offset to count."""
        return self.progress.position


@dataclass(frozen=True)
class Recount:
    """Recount of one source partition from its first record on.

    Parameters
    ----------
    at : counts by position.
    markers : number of markers read. Workers before 0.2 counted them as malformed packs.
    records : number of records read.
    end : of the log, as a broker knew it before the reading.
    whole_from : windows that start earlier may lack records, unix seconds.
    """

    at: Mapping[int, Counted]
    markers: int
    records: int
    end: int
    whole_from: int


async def recount(deployment: Deployment, claim: StoredCounts, positions: set[int]) -> Recount:
    """Recount a ledger's source partition under its terms; keep the counts at these positions."""
    waiting = sorted(positions)
    at: dict[int, Counted] = {}
    markers, records, whole_from = 0, 0, claim.progress.whole_from
    async with reader_of(deployment, claim.source) as reader:
        start, end = await reader.start_offset(), await reader.end_offset()
        ledger = Ledger(claim.source, deployment.topics.partitions, terms_at(claim.terms, start))
        async for record in reader.until_end():
            if start > 0 and not records:
                whole_from = max(whole_from, untouched_window(record.timestamp, 1))
            while waiting and waiting[0] <= record.offset:
                at[waiting.pop(0)] = dict(ledger.counts.rows())
            markers += ledger.apply(record.offset, record.timestamp, record.value or b"") is None
            records += 1
    if start > 0 and not records:  # retention has deleted all that was counted
        whole_from = max(whole_from, untouched_window(claim.progress.watermark_ms, 1))
    at.update({position: dict(ledger.counts.rows()) for position in waiting})
    return Recount(at, markers, records, end, whole_from)


def difference(claim: StoredCounts, recounted: Recount, alive: Counted, deployment: Deployment) -> int:
    """Sum of absolute differences of all stored counters from the recount at the same position.

    Parameters
    ----------
    claim : the stored counts.
    recounted : of the same source partition.
    alive : the recount at the ledger's own, latest position: counts deleted since are not compared.
    deployment : gives the topics.
    """
    expected = recounted.at[claim.position]
    died = expected.keys() - alive.keys()  # after the claim's position: deleted by now, or not yet
    if claim.home is not None:
        topics = deployment.topics
        expected = {
            key: value
            for key, value in expected.items()
            if topics.counts_partition(getattr(key, "fingerprint", 0)) == claim.home
        }
    both = {
        key
        for key in (expected.keys() | claim.counted.keys()) - died
        if getattr(key, "window_start", 0) >= recounted.whole_from
    }
    return sum(_apart(key, expected.get(key), claim.counted.get(key), recounted.markers) for key in both)


def _apart(key: row_keys.Key, expected: bytes | None, stored: bytes | None, markers: int) -> int:
    if expected == stored:
        return 0
    if isinstance(key, row_keys.RejectedKey):
        more = _packs(stored) - _packs(expected)
        return max(0, more - markers) if key == MARKERS_BEFORE and more > 0 else abs(more)
    ours, theirs = _counters(expected), _counters(stored)
    size = max(len(ours), len(theirs))
    return int(np.abs(_padded(ours, size) - _padded(theirs, size)).sum())


def _padded(counters: Integers, size: int) -> Integers:
    return np.pad(counters, (0, size - len(counters)))


def _packs(value: bytes | None) -> int:
    return row_values.decode_rejected(value) if value else 0


def _counters(value: bytes | None) -> Integers:
    if value is None:
        return np.zeros(1, dtype=np.int64)
    counters = row_values.decode_counters(value)
    return np.array([counters.reports, counters.packs, *counters.counts], dtype=np.int64)
