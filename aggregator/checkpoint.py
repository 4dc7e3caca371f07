"""What leaves in one transaction of a ledger: state rows, counts, rejections, estimates. Pure.

Rule: everything that leaves because of records leaves in the transaction that moves the position past them.
"""

import msgspec

from aggregator import estimate_record, row_keys, rows
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
    progress = _progress(ledger, closed_until_ms)
    dead = [_counts_row(ledger, topics, key, None) for key in ledger.dead()]
    records = _state(ledger, topics)
    records += _rejections(ledger, topics) + _estimates(ledger, estimator, topics)
    if closed_until_ms is not None:
        records += _counts(ledger, topics, progress)
    records += dead  # after progress: who misses a row knows already that its window is over
    if records:
        records.append(_progress_row(ledger, topics, progress))
    return records


def stored_rows(ledger: Ledger, topics: Topics) -> list[Outgoing]:
    """Drain what changed in a ledger into rows of `state` alone, the progress row last."""
    return [*_state(ledger, topics), _progress_row(ledger, topics, _progress(ledger, None))]


def _progress(ledger: Ledger, closed_until_ms: int | None) -> bytes:
    watermark_ms = ledger.watermark_ms
    return rows.encode_progress(
        rows.Progress(ledger.position, watermark_ms, closed_until_ms or watermark_ms, ledger.whole_from)
    )


def _progress_row(ledger: Ledger, topics: Topics, progress: bytes) -> Outgoing:
    return Outgoing(
        topics.state, ledger.partition, row_keys.encode_key(row_keys.SingleKey.PROGRESS), progress
    )


def _state(ledger: Ledger, topics: Topics) -> list[Outgoing]:
    return [Outgoing(topics.state, ledger.partition, key, value) for key, value in ledger.drain()]


def _counts(ledger: Ledger, topics: Topics, progress: bytes) -> list[Outgoing]:
    """Changed counts first, then progress to every partition: who reads the one has read the other."""
    changed = [_counts_row(ledger, topics, key, value) for key, value in ledger.drain_unpublished()]
    key = row_keys.with_source(row_keys.encode_key(row_keys.SingleKey.PROGRESS), ledger.partition)
    return changed + [Outgoing(topics.counts, p, key, progress) for p in range(topics.partitions)]


def _counts_row(ledger: Ledger, topics: Topics, key: row_keys.Key, value: bytes | None) -> Outgoing:
    home = topics.counts_partition(getattr(key, "fingerprint", 0))
    data = row_keys.with_source(row_keys.encode_key(key), ledger.partition)
    return Outgoing(topics.counts, home, data, value)


def _rejections(ledger: Ledger, topics: Topics) -> list[Outgoing]:
    """Reason and source offset of every rejected pack; nothing of the pack itself."""
    partition = ledger.partition
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
    partition = ledger.partition
    records = []
    for window, record in estimator.drain():
        note = rows.encode_published(rows.Published(record.revision, record.final))
        key = row_keys.encode_key(row_keys.PublishedKey(*window))
        records.append(Outgoing(topics.estimates, None, record.key, estimate_record.encode(record)))
        records.append(Outgoing(topics.state, partition, key, note))
    for window in estimator.forgotten():
        key = row_keys.encode_key(row_keys.PublishedKey(*window))
        records.append(Outgoing(topics.state, partition, key, None))
    return records
