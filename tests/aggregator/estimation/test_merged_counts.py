"""Merging partitions: the sum over all sources, in any order of their rows."""

import random
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.counting.counts import StateRecord
from deniable.estimators.collection import Collection
from tests.support.aggregator.builders import (
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    new_ledger,
    progress_row,
    record_of,
    terms_rows,
)
from tests.support.messages import PinMessages

PROGRESS = row_keys.encode_key(row_keys.SingleKey.PROGRESS)


def published(partition: int, seed: int) -> tuple[list[StateRecord], dict[row_keys.Key, bytes]]:
    """Rows that one partition publishes over two windows: keys with their source, and the final rows."""
    source, ledger, records = random.Random(seed), new_ledger(partition), []
    for number in range(source.randrange(8)):
        collection, window = source.choice([FRUIT, PLACE]), T0 + 10 * source.randrange(2)
        reports = source.choices(range(5), k=source.randrange(1, 5))
        cohort = source.randrange(collection.cohorts)
        record = record_of(collection, window, number, reports, cohort, partition)
        ledger.apply(number, T0 * 1000, record)
        for key, value in ledger.drain_unpublished().rows():
            records.append((row_keys.with_source(row_keys.encode_key(key), partition), value))
        records.append(
            (row_keys.with_source(PROGRESS, partition), progress_row(ledger.position, T0 * 1000 + number))
        )
    return records, dict(ledger.counts.rows())


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_any_interleaving_of_sources_yields_the_sum(source: random.Random) -> None:
    merged = MergedCounts()
    queues, expected = [], {FRUIT: np.zeros((1, 4), np.int64), PLACE: np.zeros((3, 16), np.int64)}
    packs = rejected = 0
    for partition in range(PARTITIONS):
        records, counted = published(partition, source.randrange(1000))
        queues.append(records)
        for key, value in counted.items():
            if isinstance(key, row_keys.CountKey):
                collection = FRUIT if key.fingerprint == FRUIT.fingerprint else PLACE
                counters = row_values.decode_counters(value)
                expected[collection][key.cohort] += counters.counts
                packs += counters.packs
            else:
                rejected += row_values.decode_rejected(value)
    while any(queues):
        merged.apply(*source.choice([queue for queue in queues if queue]).pop(0))
    totals = {collection: merged.all_windows(collection) for collection in expected}
    for collection, total in totals.items():
        np.testing.assert_array_equal(total.counts, expected[collection])
    assert sum(total.packs for total in totals.values()) == packs
    assert sum(total.rejected for total in totals.values()) == rejected
    assert sum(merged.packs(window) for window in merged.windows()) == packs


def counters_row(
    collection: Collection, source: int, counts: list[int], packs: int = 1, window: int = T0
) -> tuple[bytes, bytes]:
    key = row_keys.encode_key(row_keys.CountKey(collection.fingerprint, window, 0, 0))
    counters = row_values.CounterPage(sum(counts), packs, np.array(counts, dtype=np.int64))
    return row_keys.with_source(key, source), row_values.encode_counters(counters)


def test_newer_row_replaces_the_older() -> None:
    merged = MergedCounts()
    for counts, packs in [([1, 0, 0, 0], 1), ([1, 2, 0, 0], 2)]:
        assert merged.apply(*counters_row(FRUIT, 0, counts, packs)) == (FRUIT.fingerprint, T0)
    merged.apply(*counters_row(FRUIT, 2, [0, 0, 0, 5], 1))
    totals = merged.totals((FRUIT.fingerprint, T0), FRUIT)
    assert totals.counts.tolist() == [[1, 2, 0, 5]]
    assert (totals.reports, totals.cohort_sizes.tolist(), totals.packs, totals.rejected) == (8, [8], 3, 0)


def test_pages_are_concatenated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_values, "PAGE_COUNTERS", 3)
    ledger, merged = new_ledger(), MergedCounts()
    for number, reports in enumerate([[0, 1], [3, 3, 3]]):
        ledger.apply(number, T0 * 1000, record_of(number=number, reports=reports))
    changed = [(row_keys.encode_key(key), value) for key, value in ledger.drain_unpublished().rows()]
    windows = [merged.apply(row_keys.with_source(key, 0), value) for key, value in changed]
    assert windows == [None] * 2 + [(FRUIT.fingerprint, T0)] * 2  # terms come first
    totals = merged.totals((FRUIT.fingerprint, T0), FRUIT)
    assert (totals.counts.tolist(), totals.reports, totals.packs) == ([[1, 1, 0, 3]], 5, 2)
    assert merged.packs((FRUIT.fingerprint, T0)) == 2


def test_last_tombstone_deletes_the_window() -> None:
    merged, window = MergedCounts(), (FRUIT.fingerprint, T0)
    refused = row_keys.with_source(row_keys.encode_key(row_keys.RejectedKey(*window, "duplicate")), 1)
    for key, value in [counters_row(FRUIT, 0, [1] * 4), counters_row(FRUIT, 1, [2] * 4)]:
        merged.apply(key, value)
    merged.apply(refused, row_values.encode_rejected(6))
    assert merged.totals(window, FRUIT).rejected == 6
    assert merged.apply(counters_row(FRUIT, 1, [0])[0], None) == window
    assert merged.totals(window, FRUIT).counts.tolist() == [[1] * 4]
    assert merged.apply(counters_row(FRUIT, 0, [0])[0], None) == window
    assert (merged.windows(), merged.packs(window), merged.totals(window, FRUIT).rejected) == ([], 0, 6)
    for _ in range(2):
        assert merged.apply(refused, None) == window
        assert merged.totals(window, FRUIT).rejected == 0


def test_windows_come_oldest_first() -> None:
    merged = MergedCounts()
    for start in (T0 + 20, T0, T0 + 10):
        merged.apply(*counters_row(FRUIT, 0, [1, 0, 0, 0], window=start))
    assert merged.windows() == [(FRUIT.fingerprint, T0 + seconds) for seconds in (0, 10, 20)]


def test_closed_until_needs_every_partition() -> None:
    merged = MergedCounts()
    for source, watermark_ms in enumerate([900, 700, 800]):
        assert merged.apply(row_keys.with_source(PROGRESS, source), progress_row(1, watermark_ms)) is None
    assert merged.closed_until_ms(4) == 0
    merged.apply(row_keys.with_source(PROGRESS, 3), progress_row(1, 750))
    assert merged.closed_until_ms(4) == 700
    merged.apply(row_keys.with_source(PROGRESS, 1), progress_row(1, 1000))
    assert merged.closed_until_ms(4) == 750


def test_window_expires_when_any_partition_is_past_it() -> None:
    merged, window = MergedCounts(), (FRUIT.fingerprint, T0)
    for source in range(PARTITIONS):
        for key, value in terms_rows(source):
            assert merged.apply(key, value) is None
    assert not merged.is_dying(window)
    for watermark_ms, dying in [((T0 + 35) * 1000, False), ((T0 + 35) * 1000 + 1, True)]:
        merged.apply(row_keys.with_source(PROGRESS, 2), progress_row(1, watermark_ms))
        merged.apply(row_keys.with_source(PROGRESS, 3), progress_row(1, T0 * 1000))
        assert merged.is_dying(window) == dying


def test_messages(pin_messages: PinMessages) -> None:

    keys: list[row_keys.Key] = [
        row_keys.IdsKey(FRUIT.fingerprint, T0, 1),
        row_keys.PublishedKey(FRUIT.fingerprint, T0),
        row_keys.SingleKey.OWNER,
    ]

    def apply(key: row_keys.Key) -> None:
        MergedCounts().apply(row_keys.with_source(row_keys.encode_key(key), 0), b"")

    pin_messages({f"a row of state with {type(each).__name__}": partial(apply, each) for each in keys})
