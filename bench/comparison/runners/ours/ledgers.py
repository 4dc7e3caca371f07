"""Ledgers without Kafka: packs of one window, their counts, and the published rows."""

from collections.abc import Sequence

import numpy as np

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger import row_keys
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.protocol import wire

WINDOW = 1_767_225_600  # its start, unix seconds
RUN_BYTES = 2 * 2**20


def record_of(collection: Collection, cohort: int, reports: int, number: int) -> bytes:
    """A pack of random reports; its number determines its id."""
    generator = np.random.default_rng(number)
    kind = wire.mechanism_number(collection.mechanism)
    if kind == wire.RAPPOR_NUMBER:
        payload = generator.bytes(reports * wire.report_bytes(kind, collection.width))
    else:
        values = generator.integers(collection.width, size=reports)
        payload = values.astype(wire.bucket_dtype(collection.width)).tobytes()
    return wire.encode(
        wire.Pack(
            mechanism=kind,
            cohort=cohort,
            fingerprint=collection.fingerprint,
            window_start=WINDOW,
            reports=reports,
            width=collection.width,
            pack_id=number.to_bytes(wire.PACK_ID_BYTES, "little"),
            payload=payload,
        )
    )


def opened(collections: Sequence[Collection], partition: int = 0, partitions: int = 1) -> Ledger:
    """An empty ledger that accepts packs of these collections."""
    ledger = Ledger(partition, partitions)
    ledger.agree({each.fingerprint: each for each in collections}, 1)
    return ledger


def count(ledger: Ledger, records: Sequence[bytes]) -> Ledger:
    """Count the records after its position; return the same ledger."""
    for offset, record in enumerate(records, ledger.position):
        ledger.apply(offset, WINDOW * 1000, record)
    return ledger


def runs(records: Sequence[bytes]) -> list[Run]:
    """The records as runs, each about as large as what a fetch brings."""
    size = max(1, RUN_BYTES // len(records[0]))
    lengths = np.array([len(record) for record in records], np.int64)
    return [
        Run(
            b"".join(records[first : first + size]),
            np.arange(first, min(first + size, len(records))),
            np.full(len(lengths[first : first + size]), WINDOW * 1000),
            lengths[first : first + size].cumsum() - lengths[first : first + size],
            lengths[first : first + size],
            lambda _: (),
        )
        for first in range(0, len(records), size)
    ]


def spread(collections: Sequence[Collection], packs: int, reports: int) -> list[bytes]:
    """Return this many packs, cycling through the collections and their cohorts."""
    records = []
    for number in range(packs):
        turn, which = divmod(number, len(collections))
        collection = collections[which]
        records.append(record_of(collection, turn % collection.cohorts, reports, number))
    return records


def published(collection: Collection, partitions: int, reports: int) -> list[tuple[bytes, bytes]]:
    """Rows of `counts` of this many ledgers, each of which has counted one pack of the window."""
    rows = []
    for source in range(partitions):
        ledger = count(opened([collection], source, partitions), [record_of(collection, 0, reports, source)])
        for key, value in ledger.drain_unpublished().rows():
            rows.append((row_keys.with_source(row_keys.encode_key(key), source), value))
    return rows


def merged(collection: Collection, rows: Sequence[tuple[bytes, bytes]]) -> WindowCounts:
    """The window's counts merged from the rows of all ledgers, as an estimator does."""
    counts = MergedCounts()
    for key, value in rows:
        counts.apply(key, value)
    return counts.totals((collection.fingerprint, WINDOW), collection)
