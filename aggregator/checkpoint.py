"""What leaves in one transaction of a ledger: state rows, counts, rejections, estimates. Pure.

Rule: everything that leaves because of records leaves in the transaction that moves the position past them.
"""

import msgspec

from aggregator import estimate_record, rows
from aggregator.estimator import Estimator
from aggregator.ledger import Ledger
from aggregator.ledger_store import Outgoing
from aggregator.topics import Topics


def compose(
    ledger: Ledger, estimator: Estimator, topics: Topics, closed_until_ms: int | None
) -> list[Outgoing]:
    """Drain the ledger and the estimator into the records of one transaction.

    Parameters
    ----------
    ledger, estimator : of the same partition; what they give here they never give again.
    topics : names of this deployment.
    closed_until_ms : given when counts are to be published, as they must be when some have died: no report
        with an earlier append time, unix milliseconds, is still to come in this partition.

    Returns
    -------
    The records, the ledger's progress row last; empty when there is nothing to tell.
    """
    partition = ledger.acceptance.partition
    progress = rows.encode_progress(
        rows.Progress(ledger.position, ledger.watermark_ms, closed_until_ms or ledger.watermark_ms)
    )
    dead = [_counts_row(ledger, topics, key, None) for key in ledger.dead()]
    records = [Outgoing(topics.state, partition, key, value) for key, value in ledger.drain()]
    records += _rejections(ledger, topics) + _estimates(ledger, estimator, topics)
    if closed_until_ms is not None:
        records += _counts(ledger, topics, progress)
    records += dead  # after progress: who misses a row knows already that its window is over
    if records:
        records.append(Outgoing(topics.state, partition, rows.encode_key(rows.SingleKey.PROGRESS), progress))
    return records


def _counts(ledger: Ledger, topics: Topics, progress: bytes) -> list[Outgoing]:
    """Changed counts first, then progress to every partition: who reads the one has read the other."""
    changed = [_counts_row(ledger, topics, key, value) for key, value in ledger.drain_unpublished()]
    key = rows.with_source(rows.encode_key(rows.SingleKey.PROGRESS), ledger.acceptance.partition)
    return changed + [Outgoing(topics.counts, p, key, progress) for p in range(topics.partitions)]


def _counts_row(ledger: Ledger, topics: Topics, key: rows.Key, value: bytes | None) -> Outgoing:
    home = topics.counts_partition(getattr(key, "fingerprint", 0))
    data = rows.with_source(rows.encode_key(key), ledger.acceptance.partition)
    return Outgoing(topics.counts, home, data, value)


def _rejections(ledger: Ledger, topics: Topics) -> list[Outgoing]:
    """Reason and source offset of every rejected pack; nothing of the pack itself."""
    partition = ledger.acceptance.partition
    return [
        Outgoing(
            topics.rejected,
            None,
            None,
            msgspec.json.encode(
                {"version": 1, "partition": partition, "offset": refusal.offset, "reason": refusal.reason}
            ),
        )
        for refusal in ledger.drain_refusals()
    ]


def _estimates(ledger: Ledger, estimator: Estimator, topics: Topics) -> list[Outgoing]:
    """New estimates with a note of each in the ledger; notes of windows that are gone are deleted."""
    partition = ledger.acceptance.partition
    records = []
    for window, record in estimator.drain():
        note = rows.encode_published(rows.Published(record.revision, record.final))
        key = rows.encode_key(rows.PublishedKey(*window))
        records.append(Outgoing(topics.estimates, None, record.key, estimate_record.encode(record)))
        records.append(Outgoing(topics.state, partition, key, note))
    for window in estimator.forgotten(ledger.watermark_ms):
        key = rows.encode_key(rows.PublishedKey(*window))
        records.append(Outgoing(topics.state, partition, key, None))
    return records
