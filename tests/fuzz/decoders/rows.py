"""Rows: what another program that can write to `state`, `counts`, `rejected` or `windows` leaves there.

An input is key, value, key, value and so on, with BETWEEN between them. The rows are decoded one by one,
printed by `inspect`, and then read as a ledger, as merged counts and as final windows.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import WindowsReading
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.row_values import RowError
from deniable.aggregator.ledger.terms import terms_of
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records import final_window
from deniable.aggregator.records.estimate import decode_estimate, encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.query.inspection.records import fields_of, line_of
from deniable.deploy.query.inspection.rows import Inspection
from tests.support.aggregator.builders import COLLECTIONS, FRUIT, PLACE, T0, counts_of, record_of

BETWEEN = b"\xff--\xff"
PARTITIONS = 2
TABLES = ("state", "counts", "rejected", "windows")
INSPECTION = Inspection(COLLECTIONS, payload=True)
METRICS = WorkerMetrics(COLLECTIONS)
PERIOD = Period(T0 - 100, T0 + 100)
ENCODERS = {
    row_values.decode_counters: row_values.encode_counters,
    row_values.decode_progress: row_values.encode_progress,
    row_values.decode_rejected: row_values.encode_rejected,
    row_values.decode_ids: row_values.encode_ids,
    row_values.decode_published: row_values.encode_published,
    row_values.decode_genesis: row_values.encode_genesis,
    row_values.decode_revision: row_values.encode_revision,
    row_values.decode_terms: row_values.encode_terms,
}


class Row(NamedTuple):
    key: bytes
    value: bytes
    offset: int = 0
    timestamp: int = T0 * 1000


def _joined(*found: tuple[bytes, bytes]) -> bytes:
    return BETWEEN.join(part for row in found for part in row)


def _rows_of(data: bytes) -> Iterator[Row]:
    parts = iter(data.split(BETWEEN))
    return (Row(key, value) for key, value in zip(parts, parts, strict=False))


def _ledger_rows(source: int) -> list[tuple[bytes, bytes]]:
    counts = row_values.CounterPage(3, 1, counts_of(FRUIT, (0, 1, 3)))
    bits = row_values.CounterPage(2, 1, counts_of(PLACE, (7, 9)))
    stored: list[row_keys.Stored] = [
        (row_keys.TermsKey(FRUIT.fingerprint), row_values.encode_terms(terms_of(FRUIT))),
        (row_keys.TermsKey(PLACE.fingerprint), row_values.encode_terms(terms_of(PLACE))),
        (row_keys.CountKey(FRUIT.fingerprint, T0, 0, 0), row_values.encode_counters(counts)),
        (row_keys.CountKey(PLACE.fingerprint, T0, 1, 0), row_values.encode_counters(bits)),
        (row_keys.RejectedKey(FRUIT.fingerprint, T0, "duplicate"), row_values.encode_rejected(2)),
        (row_keys.IdsKey(FRUIT.fingerprint, T0, 5), row_values.encode_ids(bytes(32))),
        (
            row_keys.PublishedKey(FRUIT.fingerprint, T0),
            row_values.encode_published(row_values.Published(1, True)),
        ),
        (row_keys.SingleKey.REVISION, row_values.encode_revision(1)),
        (row_keys.SingleKey.GENESIS, row_values.encode_genesis(row_values.Genesis(bytes(16), PARTITIONS))),
        (
            row_keys.SingleKey.PROGRESS,
            row_values.encode_progress(row_values.LedgerProgress(9, T0 * 1000, T0 * 1000, T0 + 60)),
        ),
    ]
    return [(row_keys.encode_key(key), value) for key, value in stored]


def _pages() -> list[tuple[bytes, bytes]]:
    sizes = np.array([5, 6, 7])
    counts = WindowCounts(counts_of(PLACE, (7, 9))[None].repeat(3, axis=0), sizes, 4, 1)
    return list(final_window.encode_pages(final_window.FinalWindow.of(PLACE, T0, counts)))


STATE = _ledger_rows(0)
COUNTS = [
    (row_keys.with_source(key, source), value)
    for source in range(PARTITIONS)
    for key, value in STATE
    if key[:1] in b"TCRP"
]
REFUSAL = (b"", b'{"version":1,"partition":0,"offset":12,"reason":"duplicate"}')
SEEDS = [
    *(_joined(one) for one in (*STATE, *COUNTS[: len(COUNTS) // 2], *_pages(), REFUSAL)),
    _joined(*STATE),
    _joined(*COUNTS),
    _joined(*_pages()),
]


def check(data: bytes) -> None:
    """RowError is all that comes of a row; `inspect` shows it in any case."""
    found = list(_rows_of(data))
    for row in found:
        _check_row(row)
    with suppress(RowError):
        _ledger(found)
    _merged(found)
    reading = WindowsReading(PLACE, PERIOD, set())
    for row in found:
        reading.take(0, row)
    assert reading.joined().counts.counts.min() >= 0


def _check_row(row: Row) -> None:
    for table in TABLES:
        shown = fields_of(table, INSPECTION, 0, row)
        json.dumps(shown)
        line_of(shown)
    for decode, encode in ENCODERS.items():
        with suppress(RowError):
            written = encode(decode(row.value))
            assert encode(decode(written)) == written
    with suppress(RowError):
        assert row_keys.encode_key(row_keys.decode_key(row.key)) == row.key
    with suppress(RowError):
        key, source = row_keys.split_source(row.key)
        assert row_keys.with_source(row_keys.encode_key(key), source) == row.key


def _ledger(found: list[Row]) -> None:
    """A ledger of these rows goes on, or refuses them."""
    ledger = Ledger(0, PARTITIONS)
    ledger.restore({row_keys.decode_key(row.key): row.value for row in found}.items())
    assert ledger.position >= 0
    for offset, collection in enumerate(COLLECTIONS.values(), ledger.position):
        ledger.apply(offset, (T0 + 5) * 1000, record_of(collection, reports=(1, 2)))
    ledger.drain()
    ledger.drain_unpublished()


def _merged(found: list[Row]) -> None:
    """An estimator takes what is none of ours for foreign, and says RowError of what is damaged."""
    estimator = Estimator(COLLECTIONS, PARTITIONS, {}, LostWindows(METRICS), METRICS)
    with suppress(RowError):
        for row in found:
            if not row_keys.is_foreign(row.key, PARTITIONS):
                estimator.take(row.key, row.value)
    estimator.caught_up = True
    for window, final in estimator.due():
        made = estimator.estimate_window(window, final=final)
        if made is not None:
            assert all(decode_estimate(encode_estimate(each)) for each in made.records)
            assert made.counts is None or list(final_window.encode_pages(made.counts))
    estimator.show_windows(float(T0))
    estimator.forgotten()
