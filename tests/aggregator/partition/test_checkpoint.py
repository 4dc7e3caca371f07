"""Records of one transaction, and their order."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.ledger import Ledger, Refusal
from deniable.aggregator.partition.checkpoint import compose, moved, take
from deniable.aggregator.records.estimate import decode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import (
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    TOPICS,
    estimate_due,
    new_estimator,
    new_ledger,
    pack_of,
    progress_row,
    record_of,
)

NOW_MS = T0 * 1000
DEAD_MS = FRUIT.dies_at(T0) * 1000 + 1
#: Partitions of `counts` that may hold rows.
HOMES = sorted({TOPICS.counts_partition(each) for each in (0, FRUIT.fingerprint, PLACE.fingerprint)})


def counted(*records: bytes, append_ms: int = NOW_MS, ledger: Ledger | None = None) -> Ledger:
    ledger = ledger or settled()
    for record in records:
        ledger.apply(ledger.position, append_ms, record)
    return ledger


def settled(partition: int = 0) -> Ledger:
    """A ledger with stored and published terms."""
    ledger = new_ledger(partition)
    compose(take(ledger, publishes=True), TOPICS)
    return ledger


def test_terms_and_revision_are_stored_once() -> None:
    ledger = new_ledger()
    records = compose(take(ledger, publishes=True), TOPICS)
    shown = sorted((record.topic, (record.key or b"")[:1]) for record in records)
    counts = [(TOPICS.counts, b"P")] * len(HOMES) + [(TOPICS.counts, b"T")] * 2
    assert shown == counts + [(TOPICS.state, kind) for kind in (b"P", b"T", b"T", b"V")]
    assert compose(take(ledger), TOPICS) == []


def test_moved_ledger_publishes_its_position() -> None:
    ledger = settled()
    ledger.pass_over(9, NOW_MS)
    (shown,) = moved(ledger, TOPICS)
    assert row_values.decode_progress(shown.value or b"") == row_values.LedgerProgress(9, 0, 0, T0 + 301)


def test_rejection_with_the_name_of_a_collection_says_so() -> None:
    ledger = counted(b"no pack", b"no pack")
    records = compose(take(ledger, publishes=True), TOPICS, {1: "fruit"})
    rejected = [msgspec.json.decode(each.value or b"") for each in records if each.topic == TOPICS.rejected]
    plain = {"version": 1, "partition": 0, "reason": "malformed"}
    other = {"detail": "same name, other parameters", "collection": "fruit"}
    assert rejected == [plain | {"offset": 0}, plain | {"offset": 1} | other]


def test_unchanged_ledger_has_no_records() -> None:
    estimator, ledger = new_estimator(), settled()
    assert compose(take(ledger, estimator), TOPICS) == []
    counted(record_of(), ledger=ledger)
    assert compose(take(ledger, estimator), TOPICS)
    assert compose(take(ledger, estimator), TOPICS) == []


def test_progress_follows_counts_wherever_some_may_be() -> None:
    """In the homes of collections, and of packs of no collection."""
    assert len(HOMES) < PARTITIONS
    ledger = counted(record_of(), record_of(PLACE))
    records = compose(take(ledger, new_estimator(), publishes=True), TOPICS)
    progress = row_values.encode_progress(row_values.LedgerProgress(2, NOW_MS, NOW_MS))
    key = row_keys.with_source(b"P", 0)
    kinds = [record.key[:1] for record in records if record.topic == TOPICS.counts and record.key]
    assert kinds == [b"C", b"C", *[b"P"] * len(HOMES)]
    assert [record for record in records if record.key == key] == [
        Outgoing(TOPICS.counts, partition, key, progress) for partition in HOMES
    ]
    assert records[-1] == Outgoing(TOPICS.state, 0, b"P", progress)


def test_each_collection_has_its_partition_of_counts() -> None:
    ledger = counted(record_of(), record_of(PLACE))
    for record in compose(take(ledger, new_estimator(), publishes=True), TOPICS):
        if record.topic == TOPICS.counts and record.key and record.key[:1] == b"C":
            key, source = row_keys.split_source(record.key)
            assert isinstance(key, row_keys.CountKey)
            assert (record.partition, source) == (key.fingerprint % PARTITIONS, 0)


def test_counts_are_published_only_on_request() -> None:
    ledger, estimator = counted(record_of()), new_estimator()
    assert {record.topic for record in compose(take(ledger, estimator), TOPICS)} == {TOPICS.state}
    later = compose(take(ledger, estimator, publishes=True), TOPICS)
    assert [record.key[:1] for record in later if record.key] == [b"C", *[b"P"] * len(HOMES), b"P"]


def test_state_is_written_to_the_ledgers_partition() -> None:
    ledger = settled(3)
    ledger.apply(0, NOW_MS, record_of(partition=3))
    records = compose(take(ledger, new_estimator()), TOPICS)
    assert [record.partition for record in records] == [3, 3, 3]
    assert [record.key[:1] for record in records if record.key] == [b"I", b"C", b"P"]


def test_expired_counts_are_deleted_after_progress() -> None:
    """Rows before progress, deletions after it: progress tells a reader that a missing row has expired."""
    ledger, estimator = counted(record_of(), record_of()), new_estimator()
    compose(take(ledger, estimator, publishes=True), TOPICS)
    counted(b"no pack", append_ms=DEAD_MS, ledger=ledger)
    records = compose(take(ledger, estimator, publishes=True), TOPICS)
    gone = {record.key: record for record in records if record.value is None}
    home = TOPICS.counts_partition(FRUIT.fingerprint)
    for key in (
        row_keys.CountKey(FRUIT.fingerprint, T0, 0, 0),
        row_keys.RejectedKey(FRUIT.fingerprint, T0, "duplicate"),
    ):
        data = row_keys.encode_key(key)
        assert gone.pop(data) == Outgoing(TOPICS.state, 0, data, None)
        data = row_keys.with_source(data, 0)
        assert gone.pop(data) == Outgoing(TOPICS.counts, home, data, None)
    assert [type(row_keys.decode_key(key or b"")) for key in gone] == [row_keys.IdsKey]
    counts = [(record.key or b"", record.value) for record in records if record.topic == TOPICS.counts]
    assert [value is None for _, value in counts] == [False] * (len(counts) - 2) + [True] * 2
    assert counts[-3][0][:1] == b"P"


def test_rejection_record_has_reason_and_offset_only() -> None:
    ledger = counted(record_of(number=5), record_of(number=5), b"no pack")
    shown = [
        r
        for r in compose(take(ledger, new_estimator(), publishes=True), TOPICS)
        if r.topic == TOPICS.rejected
    ]
    assert [msgspec.json.decode(record.value or b"") for record in shown] == [
        {"version": 1, "partition": 0, "offset": 1, "reason": "duplicate"},
        {"version": 1, "partition": 0, "offset": 2, "reason": "malformed"},
    ]
    assert {(record.partition, record.key) for record in shown} == {(0, None)}


def test_no_record_contains_payload() -> None:
    payload = bytes(pack_of(PLACE, reports=[0xABCD, 0x1234]).payload)
    ledger = counted(record_of(PLACE, reports=[0xABCD, 0x1234]), record_of(PLACE, reports=[0xABCD, 0x1234]))
    for record in compose(take(ledger, new_estimator(), publishes=True), TOPICS):
        assert payload not in (record.value or b"") + (record.key or b"")


def test_estimate_and_note_share_a_transaction() -> None:
    estimator, ledger = new_estimator(), counted(record_of(reports=[0, 1, 2] * 5))
    window = (FRUIT.fingerprint, T0)
    for key, value in ledger.drain_unpublished().rows():
        estimator.take(row_keys.with_source(row_keys.encode_key(key), 0), value)
    estimate_due(estimator)
    records = compose(take(ledger, estimator), TOPICS)
    record = next(record for record in records if record.topic == TOPICS.estimates)
    estimate = decode_estimate(record.value or b"")
    assert (record.partition, record.key) == (partition_of(b"fruit/%d" % T0), b"fruit/%d" % T0)
    assert (estimate.reports, estimate.revision, estimate.final) == (15, 1, False)
    note = row_keys.encode_key(row_keys.PublishedKey(*window))
    expected = Outgoing(TOPICS.state, 0, note, row_values.encode_published(row_values.Published(1, False)))
    assert expected in records
    assert all(record.key != note for record in compose(take(ledger, estimator), TOPICS))

    estimator.caught_up = True
    estimator.take(row_keys.with_source(b"P", 1), progress_row(2, DEAD_MS))
    estimator.take(row_keys.with_source(row_keys.encode_key(row_keys.CountKey(*window, 0, 0)), 0), None)
    counted(b"no pack", append_ms=DEAD_MS, ledger=ledger)
    assert Outgoing(TOPICS.state, 0, note, None) in compose(take(ledger, estimator, publishes=True), TOPICS)


def test_command_publishes_changed_terms_at_once() -> None:
    """A rebuild finds a retirement in `counts` even if no worker has run since."""
    ledger = counted(record_of())
    compose(take(ledger, publishes=True), TOPICS)
    ledger.retire(FRUIT.fingerprint)
    records = moved(ledger, TOPICS, [Refusal(5, "duplicate")])
    key = row_keys.encode_key(row_keys.TermsKey(FRUIT.fingerprint))
    value = row_values.encode_terms(ledger.terms[FRUIT.fingerprint])
    home = TOPICS.counts_partition(FRUIT.fingerprint)
    assert Outgoing(TOPICS.counts, home, row_keys.with_source(key, ledger.partition), value) in records
    [rejected] = [record for record in records if record.topic == TOPICS.rejected]
    assert b'"offset":5' in (rejected.value or b"")
    assert (records[-1].topic, records[-1].key) == (TOPICS.state, b"P")
    assert len(moved(ledger, TOPICS)) == 1


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), max_size=25))
def test_rows_and_progress_of_counts_agree(steps: list[tuple[int, bool, bool]]) -> None:
    """A reader at a progress row has exactly the rows of that position, whatever expired or was rejected."""
    ledger, estimator, merged = new_ledger(), new_estimator(), MergedCounts()
    now = T0
    for number, (seconds, publish, twin) in enumerate(steps):
        now += seconds
        window = FRUIT.window_start(now)
        ledger.apply(number, now * 1000, record_of(window_start=window, number=0 if twin else number))
        records = compose(take(ledger, estimator, publishes=publish or ledger.has_dead()), TOPICS)
        for record in records:
            if record.topic == TOPICS.counts and record.key:
                merged.apply(record.key, record.value)
        if publish:
            alive = {key[:2] for key, _ in ledger.counts.rows() if not isinstance(key, row_keys.SingleKey)}
            assert set(merged.windows()) == alive
            for window_key in alive - {(0, 0)}:
                mine = [tally for key, tally in ledger.counts.tallies.items() if key[:2] == window_key]
                totals = merged.totals(window_key, FRUIT)
                assert totals.packs == sum(tally.packs for tally in mine)
                assert totals.counts.tolist() == [mine[0].counts.tolist()]
            assert merged.progress[0].position == number + 1


@pytest.mark.all
def test_long_run_leaves_no_stale_rows() -> None:
    """Both compacted topics and their merged counts hold only rows of live windows."""
    ledger, estimator = new_ledger(), new_estimator()
    estimator.caught_up = True
    kept: dict[tuple[str, int | None, bytes | None], bytes] = {}
    sizes = []
    for number in range(200):
        start = T0 + 10 * number
        counted(record_of(window_start=start, reports=[0] * 9), append_ms=start * 1000, ledger=ledger)
        for record in compose(take(ledger, estimator, publishes=True), TOPICS):
            if record.topic == TOPICS.counts:
                estimator.take(record.key or b"", record.value)
            if record.topic in (TOPICS.counts, TOPICS.state):
                place = (record.topic, record.partition, record.key)
                kept.pop(place, None)
                if record.value is not None:
                    kept[place] = record.value
        estimate_due(estimator)
        sizes.append((len(kept), len(estimator.merged._windows), len(estimator.published)))
    assert max(sizes[10:]) == max(sizes[-10:])
    assert sizes[-1][1:] == (4, 5)  # the note of an expired window is deleted one checkpoint later


def partition_of(key: bytes) -> int:
    """Partition that Kafka clients choose for a key by default."""
    return int(DefaultPartitioner()(key, list(range(PARTITIONS)), []))


def test_parts_of_an_estimate_share_transaction_and_partition() -> None:
    """In one partition, so one member of a consumer group reads them all; with one note."""
    wide = replace(FRUIT, mechanism=KRR.from_epsilon(5000, 4.0), values=(), other=False, publish_all=True)
    window = (wide.fingerprint, T0)
    totals = WindowCounts(np.ones((1, 5000), np.int64), np.array([5000]), packs=3, rejected=0)
    records = window_estimate.records_of(wide, T0, totals, window_estimate.estimate(wide, totals), final=True)
    assert [record.part for record in records] == [1, 2]
    noted = row_values.Published(3, True)
    checkpoint = take(settled())._replace(
        estimates=[(window, record) for record in records], notes={window: noted}
    )
    sent = compose(checkpoint, TOPICS)
    parts = [record for record in sent if record.topic == TOPICS.estimates]
    assert [part.key for part in parts] == [b"fruit/%d" % T0, b"fruit/%d/2" % T0]
    assert {part.partition for part in parts} == {partition_of(b"fruit/%d" % T0)}
    note = row_keys.encode_key(row_keys.PublishedKey(*window))
    assert [record.value for record in sent if record.key == note] == [row_values.encode_published(noted)]


def test_counts_during_encoding_are_not_in_the_checkpoint() -> None:
    """Taking a checkpoint copies nothing, so later counting must not modify it."""
    ledger = counted(record_of(number=1))
    checkpoint = take(ledger, publishes=True)
    expected = compose(checkpoint, TOPICS)
    counted(record_of(number=2), ledger=ledger)
    assert compose(checkpoint, TOPICS) == expected
    assert compose(take(ledger, publishes=True), TOPICS) != expected
