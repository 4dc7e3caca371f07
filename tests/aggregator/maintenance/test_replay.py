"""The recount reports a difference of one in any counter, and reports nothing else."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from deniable.aggregator.estimation.merged_counts import MergedCounts
from deniable.aggregator.history import window_reader
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.maintenance import ledger_reader
from deniable.aggregator.maintenance import recount as recount_module
from deniable.aggregator.maintenance import replay as replay_module
from deniable.aggregator.maintenance.recount import Counted, Recount, StoredCounts
from deniable.aggregator.maintenance.replay import Comparison, ReplayError, replay
from deniable.aggregator.partition.checkpoint import compose, take
from deniable.aggregator.records.estimate import decode_estimate, encode_estimate
from deniable.cluster.reading import partition_reader
from deniable.protocol import wire
from deniable.protocol.marker import MARKER
from tests.support.aggregator.builders import (
    DEPLOYMENT,
    FRUIT,
    GENESIS,
    PARTITIONS,
    PLACE,
    T0,
    TOPICS,
    MemoryLog,
    estimate_due,
    new_estimator,
    new_ledger,
    pack_of,
    progress_row,
    record_of,
)
from tests.support.messages import PinMessages

WINDOW = (FRUIT.fingerprint, T0)
DEAD_MS = FRUIT.dies_at(T0) * 1000 + 1


def counted() -> Counted:
    """Rows of a ledger with both mechanisms and rejections."""
    ledger = new_ledger()
    for record in (record_of(), record_of(), record_of(PLACE, cohort=2), b"no pack"):
        ledger.apply(ledger.position, T0 * 1000, record)
    return dict(ledger.counts.rows())


def difference(stored: Counted, expected: Counted, home: int | None = None, markers: int = 0) -> int:
    claim = StoredCounts(0, row_values.LedgerProgress(4), stored, home)
    return recount_module.difference(claim, Recount({4: expected}, markers, 4, 4, 0), expected, DEPLOYMENT)


def altered(rows_of: Counted) -> list[Counted]:
    """The same rows, once for each counter, with that counter raised by one."""
    found = []
    for key, value in rows_of.items():
        if isinstance(key, row_keys.RejectedKey):
            found.append({**rows_of, key: row_values.encode_rejected(row_values.decode_rejected(value) + 1)})
            continue
        reports, packs, counts = row_values.decode_counters(value)
        others = [
            row_values.CounterPage(reports + 1, packs, counts),
            row_values.CounterPage(reports, packs + 1, counts),
        ]
        for place in range(len(counts)):
            one = (np.arange(len(counts)) == place).astype(np.int64)
            others.append(row_values.CounterPage(reports, packs, counts + one))
        found += [{**rows_of, key: row_values.encode_counters(other)} for other in others]
    return found


def test_equal_counts_do_not_differ() -> None:
    assert difference(counted(), counted()) == 0


def test_difference_of_one_is_seen_from_both_sides() -> None:
    others = altered(counted())
    assert len(others) == (4 + 2) + (16 + 2) + 2
    for other in others:
        assert difference(other, counted()) == difference(counted(), other) == 1


def test_missing_or_extra_row_differs_by_its_counters() -> None:
    whole = counted()
    for key, value in whole.items():
        rest = {other: row for other, row in whole.items() if other != key}
        if isinstance(key, row_keys.RejectedKey):
            expected = row_values.decode_rejected(value)
        else:
            counters = row_values.decode_counters(value)
            expected = counters.reports + counters.packs + int(counters.counts.sum())
        assert expected > 0
        assert difference(rest, whole) == difference(whole, rest) == expected


def test_row_of_another_length_differs() -> None:
    key = row_keys.CountKey(*WINDOW, 0, 0)
    short, long = (
        row_values.encode_counters(row_values.CounterPage(3, 1, np.array(n))) for n in ([1, 2], [1, 2, 5])
    )
    assert recount_module._apart(key, short, long, 0) == recount_module._apart(key, long, short, 0) == 5


def test_differences_do_not_cancel_out() -> None:
    key = row_keys.CountKey(*WINDOW, 0, 0)
    one, other = (
        row_values.encode_counters(row_values.CounterPage(3, 1, np.array(n))) for n in ([2, 1], [1, 2])
    )
    assert recount_module._apart(key, one, other, 0) == 2


def test_counts_partition_serves_only_its_collections() -> None:
    whole = counted()
    for home in range(PARTITIONS):
        mine = {k: v for k, v in whole.items() if getattr(k, "fingerprint", 0) % PARTITIONS == home}
        assert difference(mine, whole, home) == 0
        for other in altered(mine):
            assert difference(other, whole, home) == 1


@pytest.mark.parametrize("deleted", [True, False])
def test_windows_expired_after_the_position_may_be_deleted(deleted: bool) -> None:
    whole = counted()
    dead = row_keys.CountKey(*WINDOW, 0, 0)
    alive = {key: value for key, value in whole.items() if key != dead}
    home = TOPICS.counts_partition(FRUIT.fingerprint)
    stored = {k: v for k, v in whole.items() if getattr(k, "fingerprint", 0) % PARTITIONS == home}
    if deleted:
        del stored[dead]
    claim = StoredCounts(0, row_values.LedgerProgress(4), stored, home)
    assert recount_module.difference(claim, Recount({4: whole}, 0, 4, 4, 0), alive, DEPLOYMENT) == 0


def test_expired_row_that_remains_differs() -> None:
    whole = counted()
    dead = row_keys.CountKey(*WINDOW, 0, 0)
    alive = {key: value for key, value in whole.items() if key != dead}
    home = TOPICS.counts_partition(FRUIT.fingerprint)
    stored = {k: v for k, v in whole.items() if getattr(k, "fingerprint", 0) % PARTITIONS == home}
    assert difference(stored, alive, home) > 0


def final_difference(reports: int = 0, packs: int = 0, watermark_ms: int = 0, stranger: bool = False) -> int:
    """Difference of a final estimate that exceeds the recount by this much."""
    estimator, merged = new_estimator(), MergedCounts()
    for number in range(3):
        ledger = new_ledger()
        ledger.apply(0, T0 * 1000, record_of(number=number))
        for row, value in ledger.drain_unpublished().rows():
            key = row_keys.with_source(row_keys.encode_key(row), number)
            estimator.take(key, value)
            merged.apply(key, value)
    merged.progress[2] = row_values.LedgerProgress(1, watermark_ms, watermark_ms)
    estimates = estimator.estimate_window(WINDOW, final=True)
    assert estimates is not None
    [record] = estimates.records
    claimed = msgspec.structs.replace(
        record,
        reports=record.reports + reports,
        packs=record.packs + packs,
        fingerprint="0" * 16 if stranger else record.fingerprint,
    )
    return replay_module._final_difference(claimed, merged, DEPLOYMENT)


def test_final_estimate_is_compared_by_reports_and_packs() -> None:
    assert final_difference() == 0
    assert [final_difference(reports=n) for n in (-1, 1)] == [1, 1]
    assert [final_difference(packs=n) for n in (-1, 1)] == [1, 1]
    assert final_difference(reports=-1, packs=1) == 2


def test_final_estimate_of_a_partial_window_is_not_compared() -> None:
    assert final_difference(reports=5, watermark_ms=DEAD_MS) == 0
    assert final_difference(reports=5, watermark_ms=DEAD_MS - 1) == 5
    assert final_difference(reports=5, stranger=True) == 0


class Workers:
    """Topics in memory as written by exact workers."""

    def __init__(self) -> None:
        self.log = MemoryLog()
        for partition in range(PARTITIONS):
            self.log.append(TOPICS.state, partition, GENESIS[1], GENESIS[0])
        self.ledgers = [new_ledger(partition) for partition in range(PARTITIONS)]
        self.estimators = [new_estimator() for _ in range(PARTITIONS)]

    def send(self, pack: wire.Pack, append_ms: int = T0 * 1000) -> None:
        partition = wire.partition_of(pack.pack_id, PARTITIONS)
        self.log.append(TOPICS.reports, partition, wire.encode(pack), append_ms=append_ms)

    def close(self, append_ms: int) -> None:
        """Append a marker to every partition, and count."""
        for partition in range(PARTITIONS):
            self.log.append(TOPICS.reports, partition, MARKER, append_ms=append_ms)
        self.count()

    def count(self) -> None:
        """Let every owner count, estimate and store."""
        for ledger, estimator in zip(self.ledgers, self.estimators, strict=True):
            partition = ledger.partition
            for record in self.log.partition(TOPICS.reports, partition)[ledger.position :]:
                ledger.apply(record.offset, record.timestamp, record.value or b"")
            self.log.extend(compose(take(ledger, estimator, publishes=True), TOPICS), T0 * 1000)
        for estimator, ledger in zip(self.estimators, self.ledgers, strict=True):
            for record in self.log.partition(TOPICS.counts, ledger.partition):
                estimator.take(record.key or b"", record.value)
            estimate_due(estimator)
            self.log.extend(compose(take(ledger, estimator), TOPICS), T0 * 1000)

    def replay(
        self, monkeypatch: pytest.MonkeyPatch, tell: Callable[[str], None] = lambda _: None
    ) -> Comparison:
        for module in (replay_module, partition_reader, ledger_reader):
            monkeypatch.setattr(module, "RowReader", self.log.reader)
        monkeypatch.setattr(window_reader, "records_since", self.log.since)
        return asyncio.run(replay(DEPLOYMENT, 0.2, tell))


def workers() -> Workers:
    found = Workers()
    for number in range(6):
        for partition in range(PARTITIONS):
            found.send(pack_of(number=number, partition=partition))
            found.send(pack_of(PLACE, number=number, partition=partition, cohort=number % 3))
    found.send(pack_of())
    return found


def test_exact_workers_do_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    run = workers()
    run.count()
    found = run.replay(monkeypatch)
    assert (found.difference, found.records, found.finals) == (0, 49, 0)
    assert found.counts.totals(WINDOW, FRUIT).counts.tolist() == [[24, 24, 0, 24]]
    run.close(FRUIT.closes_at(T0) * 1000 + 1)
    found = run.replay(monkeypatch)
    assert (found.difference, found.finals) == (0, 2)


def test_workers_that_continue_meanwhile_do_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """`counts` lags behind the ledger: each is compared at its own position."""
    run = workers()
    run.count()
    for partition in range(PARTITIONS):
        run.send(pack_of(number=9, partition=partition))
    for ledger in run.ledgers:
        partition = ledger.partition
        for record in run.log.partition(TOPICS.reports, partition)[ledger.position :]:
            ledger.apply(record.offset, record.timestamp, record.value or b"")
        run.log.extend(compose(take(ledger, new_estimator()), TOPICS))
    assert run.replay(monkeypatch).difference == 0


@pytest.mark.parametrize("late", [0, 1])
def test_partially_deleted_windows_do_not_differ(monkeypatch: pytest.MonkeyPatch, late: int) -> None:
    """Their watermarks pass the end of retention one after the other; the final estimate includes all."""
    run = workers()
    run.close(FRUIT.closes_at(T0) * 1000 + 1)
    for partition in range(late, PARTITIONS):
        later = pack_of(window_start=T0 + 30, number=20, partition=partition)
        run.send(later, DEAD_MS)
    run.count()
    found = run.replay(monkeypatch)
    assert (found.difference, found.finals) == (0, 2)
    assert found.counts.packs(WINDOW) == (6 if late else 0)


@pytest.mark.parametrize("topic", [TOPICS.state, TOPICS.counts])
def test_tampered_row_is_seen(monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    run = workers()
    run.count()
    key = row_keys.encode_key(row_keys.CountKey(*WINDOW, 0, 0))
    partition = 0
    if topic == TOPICS.counts:
        key, partition = row_keys.with_source(key, 0), TOPICS.counts_partition(FRUIT.fingerprint)
    newest = [r.value for r in run.log.partition(topic, partition) if r.key == key][-1]
    counters = row_values.decode_counters(newest or b"")
    changed = counters._replace(counts=counters.counts + np.array([0, 0, 1, 0]))
    run.log.append(topic, partition, row_values.encode_counters(changed), key)
    assert run.replay(monkeypatch).difference == 1


def test_pack_counted_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    run = workers()
    record = run.log.partition(TOPICS.reports, 0)[0]
    run.ledgers[0].apply(0, T0 * 1000, record.value or b"")
    run.ledgers[0].ids.by_window.clear()
    run.ledgers[0].position = 0
    run.count()
    # 3 counters, reports and packs; in the ledger and in `counts`
    assert run.replay(monkeypatch).difference == 2 * (3 + 3 + 1)


def test_windows_with_deleted_records_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first record left was appended at T0 + 300 s: deleted ones may be of windows up to T0 + 600 s."""
    run, later = workers(), T0 + 300
    old = len(run.log.partition(TOPICS.reports, 1))
    for start in (later, later + 300, later + 310):
        run.send(pack_of(window_start=start, partition=1), append_ms=max(later, start - 300) * 1000)
    run.count()
    del run.log.partition(TOPICS.reports, 1)[:old]
    found = run.replay(monkeypatch)
    assert (found.difference, found.whole_from) == (0, later + 301)
    for start, difference in [(later + 300, 0), (later + 310, 1)]:
        key = row_keys.encode_key(row_keys.CountKey(FRUIT.fingerprint, start, 0, 0))
        stored = {r.key: r.value for r in run.log.partition(TOPICS.state, 1)}[key]
        counters = row_values.decode_counters(stored or b"")
        run.log.append(TOPICS.state, 1, row_values.encode_counters(counters._replace(packs=2)), key)
        assert run.replay(monkeypatch).difference == difference


def test_a_log_that_retention_has_emptied_leaves_nothing_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted of it is no difference."""
    run = workers()
    run.count()
    for partition in range(PARTITIONS):
        run.log.empty(TOPICS.reports, partition)
    found = run.replay(monkeypatch)
    assert (found.difference, found.records) == (0, 0)
    assert found.whole_from > T0


def test_garbage_in_estimates_and_counts_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    run = workers()
    run.count()
    run.log.append(TOPICS.estimates, 0, b"no estimate")
    run.log.append(TOPICS.counts, 0, b"no row", b"k")
    found = run.replay(monkeypatch)
    assert (found.difference, found.foreign) == (0, 1)


@pytest.mark.parametrize(("stored", "found"), [(2, 1), (3, 0), (5, 0), (6, 1)])
def test_markers_that_former_workers_counted_as_malformed_do_not_differ(stored: int, found: int) -> None:
    key = row_keys.RejectedKey(0, 0, "malformed")
    rows = {key: row_values.encode_rejected(stored)}
    assert difference(rows, {key: row_values.encode_rejected(3)}, markers=2) == found


@pytest.mark.parametrize("packs", [0, 1])
def test_markers_after_the_workers_have_ended_are_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, packs: int
) -> None:
    run = workers()
    run.count()
    for partition in range(PARTITIONS):
        run.log.append(TOPICS.reports, partition, MARKER, append_ms=T0 * 1000)
    if not packs:
        assert run.replay(monkeypatch).difference == 0
        return
    run.send(pack_of(number=9))
    with pytest.raises(ReplayError):
        run.replay(monkeypatch)


def test_estimate_in_parts_is_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = workers()
    run.close(FRUIT.closes_at(T0) * 1000 + 1)
    compared = run.replay(monkeypatch).finals
    [first, *_] = (r for p in range(PARTITIONS) for r in run.log.partition(TOPICS.estimates, p))
    estimate = decode_estimate(first.value or b"")
    for part in (1, 2):
        wrong = msgspec.structs.replace(estimate, final=True, revision=10**6, part=part, parts=2, packs=10**6)
        run.log.append(TOPICS.estimates, 0, encode_estimate(wrong), wrong.key)
        found = run.replay(monkeypatch)
        assert (found.difference > 0, found.finals) == (True, compared)
        if part == 1:
            shown = found.difference
    assert found.difference == shown


def test_empty_deployment_has_no_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Workers()
    for partition in range(PARTITIONS):
        run.log.append(TOPICS.state, partition, progress_row(), b"P")
    found = run.replay(monkeypatch)
    assert (found.difference, found.records, found.finals, found.counts.windows()) == (0, 0, 0, [])


def test_messages(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = workers()
    pin_messages({"workers that are slow": lambda: slow.replay(monkeypatch)})


def test_each_step_is_told_also_while_it_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    run = workers()
    with pytest.raises(ReplayError):
        run.replay(monkeypatch, told.append)
    assert told[0] == "waiting until workers have counted the log, 0 s at most"
    ends = [len(run.log.partition(TOPICS.reports, partition)) for partition in range(PARTITIONS)]
    assert told[-1].endswith(f"partition 0 is counted up to offset 0 of {ends[0]}")
    run.count()
    told.clear()
    run.replay(monkeypatch, told.append)
    assert [step for step in told if step.startswith("recounting")] == [
        f"recounting partition {partition}, the last one is 3" for partition in range(PARTITIONS)
    ]


def test_lost_records_are_reported_before_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    run = workers()
    run.count()
    for _ in range(2):
        run.log.append(TOPICS.reports, 0, b"no pack")
    del run.log.partition(TOPICS.reports, 0)[:-1]
    monkeypatch.setattr(ledger_reader, "SESSION_SECONDS", 0.0)
    with pytest.raises(ReplayError, match="--accept-loss"):
        run.replay(monkeypatch)


def test_broker_that_knows_of_less_than_was_counted_shows_no_difference(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A leader that was replaced answers for as long as it is cut off."""
    run = workers()
    run.count()

    async def cut_off(*given: Any) -> Recount:
        del run.log.partition(TOPICS.reports, 0)[2:]
        return await recount_module.recount(*given)

    monkeypatch.setattr(replay_module, "recount", cut_off)
    monkeypatch.setattr(ledger_reader, "SESSION_SECONDS", 0.0)
    with pytest.raises(ReplayError, match="cut off from others"):
        run.replay(monkeypatch)
