"""The records of one ledger transaction: state rows, counts, rejections, estimates, final windows. Pure.

Rule: everything derived from records is written in the transaction that moves the position past them.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.acceptance import OTHER_PARAMETERS
from deniable.aggregator.ledger.counting.counts import Changes
from deniable.aggregator.ledger.ledger import Ledger, Refusal
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.records.estimate import EstimateRecord, encode_estimate
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.known_texts import KnownTexts, encode_known_texts
from deniable.aggregator.topics.partitioner import partition_of_key
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.protocol.topic_names import Topics

NO_COLLECTION = 0  # in place of a fingerprint
NO_NAMES: Mapping[int, str] = MappingProxyType({})


class Checkpoint(NamedTuple):
    """Changes of a ledger and its estimator for one transaction.

    Parameters
    ----------
    partition : of the ledger.
    progress : of the ledger.
    collections : fingerprints of all that the ledger has terms of.
    changes : of `state`.
    published : changes of `counts`; None if they wait for a later transaction.
    refusals : rejected records.
    estimates : new estimates by window, one entry per part.
    finals : counts of windows that became final.
    notes : what the ledger remembers of these estimates and finals.
    forgotten : windows whose publication rows to delete.
    known_texts : what growing knows now, by fingerprint, where it has changed.
    """

    partition: int
    progress: row_values.LedgerProgress
    collections: Collection[int]
    changes: Changes
    published: Changes | None
    refusals: Sequence[Refusal]
    estimates: Sequence[tuple[Window, EstimateRecord]]
    finals: Sequence[FinalWindow]
    notes: Mapping[Window, row_values.Published]
    forgotten: Sequence[Window]
    known_texts: Mapping[int, KnownTexts]


def progress_of(ledger: Ledger) -> row_values.LedgerProgress:
    """How far a ledger has counted."""
    return row_values.LedgerProgress(
        ledger.position, ledger.watermark_ms, ledger.closed_until_ms, ledger.whole_from
    )


def take(ledger: Ledger, estimator: Estimator | None = None, *, publishes: bool = False) -> Checkpoint:
    """Drain all changes. Quick: nothing is encoded yet.

    Parameters
    ----------
    ledger, estimator : of the same partition.
    publishes : False to leave `counts` for later; must be True if `ledger.has_dead()`.
    """
    return Checkpoint(
        partition=ledger.partition,
        progress=progress_of(ledger),
        collections=tuple(ledger.terms),
        changes=ledger.drain(),
        published=ledger.drain_unpublished() if publishes else None,
        refusals=ledger.drain_refusals(),
        estimates=estimator.drain() if estimator else [],
        finals=estimator.drained_counts() if estimator else [],
        notes=estimator.drained_notes() if estimator else {},
        forgotten=list(estimator.forgotten()) if estimator else [],
        known_texts=estimator.drained_texts() if estimator else {},
    )


def compose(
    checkpoint: Checkpoint, topics: Topics, same_names: Mapping[int, str] = NO_NAMES
) -> list[Outgoing]:
    """Encode a checkpoint into the records of one transaction.

    Parameters
    ----------
    checkpoint : what to write.
    topics : names of the topics.
    same_names : our collection's name by offset of a rejected pack that was sent with other parameters.

    Returns
    -------
    The records, the ledger's progress row last; empty if nothing changed.
    """
    progress = row_values.encode_progress(checkpoint.progress)
    records = _state(checkpoint, topics) + _rejections(checkpoint, topics, same_names)
    records += _estimates(checkpoint, topics) + _finals(checkpoint, topics) + _notes(checkpoint, topics)
    records += _known_texts(checkpoint, topics)
    if checkpoint.published is not None:
        records += _counts(checkpoint, checkpoint.published, topics, progress)
    return [*records, _progress_row(checkpoint, topics, progress)] if records else []


def moved(
    ledger: Ledger,
    topics: Topics,
    refusals: Sequence[Refusal] = (),
    same_names: Mapping[int, str] = NO_NAMES,
) -> list[Outgoing]:
    """Records of a ledger that a command has changed, always including its progress.

    `counts` gets changed terms at once: a rebuild takes them from there if `state` is lost before a worker
    publishes them. Workers publish the rest.

    Parameters
    ----------
    ledger : its own refusals are dropped.
    topics : names of the topics.
    refusals : rejected records to publish.
    same_names : see `compose`.
    """
    checkpoint = take(ledger)._replace(refusals=refusals)
    progress = row_values.encode_progress(checkpoint.progress)
    return [
        *_state(checkpoint, topics),
        *_rejections(checkpoint, topics, same_names),
        *(
            _counts_row(ledger.partition, topics, row_keys.TermsKey(each), row_values.encode_terms(terms))
            for each, terms in checkpoint.changes.terms.items()
        ),
        _progress_row(checkpoint, topics, progress),
    ]


def _state(checkpoint: Checkpoint, topics: Topics) -> list[Outgoing]:
    changed = checkpoint.changes.records()
    return [Outgoing(topics.state, checkpoint.partition, key, value) for key, value in changed]


def _progress_row(checkpoint: Checkpoint, topics: Topics, progress: bytes) -> Outgoing:
    key = row_keys.encode_key(row_keys.SingleKey.PROGRESS)
    return Outgoing(topics.state, checkpoint.partition, key, progress)


def _counts(checkpoint: Checkpoint, published: Changes, topics: Topics, progress: bytes) -> list[Outgoing]:
    """Changed counts, then progress to each partition that may hold some: its reader has read the counts.

    Deletions follow progress: a reader that misses a row knows already that its window is over.
    Rows have terms, except those of packs of no known collection.
    """
    source = checkpoint.partition
    homes = sorted({topics.counts_partition(each) for each in (NO_COLLECTION, *checkpoint.collections)})
    key = row_keys.with_source(row_keys.encode_key(row_keys.SingleKey.PROGRESS), source)
    return [
        *(_counts_row(source, topics, row, value) for row, value in published.rows()),
        *(Outgoing(topics.counts, partition, key, progress) for partition in homes),
        *(
            _counts_row(source, topics, row, None)
            for row in checkpoint.changes.dead
            if not isinstance(row, row_keys.IdsKey)
        ),
    ]


def _counts_row(source: int, topics: Topics, key: row_keys.Key, value: bytes | None) -> Outgoing:
    home = topics.counts_partition(getattr(key, "fingerprint", NO_COLLECTION))
    return Outgoing(topics.counts, home, row_keys.with_source(row_keys.encode_key(key), source), value)


def _rejections(checkpoint: Checkpoint, topics: Topics, same_names: Mapping[int, str]) -> list[Outgoing]:
    """Reason and source offset of every rejected pack; none of its contents."""
    records = []
    for refusal in checkpoint.refusals:
        rejected: dict[str, object] = {
            "version": 1,
            "partition": checkpoint.partition,
            "offset": refusal.offset,
            "reason": refusal.reason,
        }
        if name := same_names.get(refusal.offset):
            rejected |= {"detail": OTHER_PARAMETERS, "collection": name}
        records.append(Outgoing(topics.rejected, checkpoint.partition, None, msgspec.json.encode(rejected)))
    return records


def _estimates(checkpoint: Checkpoint, topics: Topics) -> list[Outgoing]:
    """New estimates."""
    records = []
    for _, record in checkpoint.estimates:
        home = partition_of_key(record.first_key, topics.partitions)  # of part 1, for all parts
        records.append(Outgoing(topics.estimates, home, record.key, encode_estimate(record)))
    return records


def _finals(checkpoint: Checkpoint, topics: Topics) -> list[Outgoing]:
    """Counts of final windows."""
    records = []
    for final in checkpoint.finals:
        home = topics.counts_partition(final.fingerprint)
        records += [Outgoing(topics.windows, home, key, value) for key, value in encode_pages(final)]
    return records


def _notes(checkpoint: Checkpoint, topics: Topics) -> list[Outgoing]:
    """Publication rows; those of forgotten windows are deleted."""
    return [
        *(note_row(topics, checkpoint.partition, *each) for each in checkpoint.notes.items()),
        *(note_row(topics, checkpoint.partition, window, None) for window in checkpoint.forgotten),
    ]


def _known_texts(checkpoint: Checkpoint, topics: Topics) -> list[Outgoing]:
    """What growing knows."""
    return [
        Outgoing(
            topics.state,
            checkpoint.partition,
            row_keys.encode_key(row_keys.KnownTextsKey(fingerprint)),
            encode_known_texts(known),
        )
        for fingerprint, known in checkpoint.known_texts.items()
    ]


def note_row(topics: Topics, partition: int, window: Window, note: row_values.Published | None) -> Outgoing:
    """Row of `state` of what was published of a window; without a note, its deletion."""
    key = row_keys.encode_key(row_keys.PublishedKey(*window))
    return Outgoing(topics.state, partition, key, None if note is None else row_values.encode_published(note))
