"""When windows are estimated, when estimates are final, and that none covers only part of the counts."""

import asyncio
import threading
from dataclasses import replace

import numpy as np
import pytest
from structlog.testing import capture_logs

from deniable.aggregator.estimation import estimator as estimator_module
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.estimator import (
    IDLE_MILLISECONDS,
    LEADERS_SECONDS,
    WAITING_MILLISECONDS,
    Estimator,
    WindowResult,
)
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.row_values import Published
from deniable.cluster.reading.partition_reader import KafkaRecord
from tests.support.aggregator.builders import (
    FRUIT,
    PARTITIONS,
    PLACE,
    T0,
    MemoryLog,
    estimate_due,
    new_estimator,
    progress_row,
)
from tests.support.messages import PinMessages

FRUITS = (FRUIT.fingerprint, T0)
CLOSES_MS = FRUIT.closes_at(T0) * 1000
DIES_MS = FRUIT.dies_at(T0) * 1000


def count(
    estimator: Estimator,
    packs: int = 1,
    counts: tuple[int, ...] = (5, 3, 2, 1),
    source: int = 0,
    cohort: int = 0,
) -> None:
    """Let a partition publish its counts of the window after this many packs."""
    collection = FRUIT if len(counts) == FRUIT.width else PLACE
    key = row_keys.encode_key(row_keys.CountKey(collection.fingerprint, T0, cohort, 0))
    counters = row_values.CounterPage(max(counts) * 2, packs, np.array(counts, dtype=np.int64))
    estimator.take(row_keys.with_source(key, source), row_values.encode_counters(counters))


def close(estimator: Estimator, watermark_ms: int = CLOSES_MS + 1, *sources: int) -> None:
    """Let these partitions (by default all) publish how far they are closed."""
    for source in sources or range(PARTITIONS):
        row = progress_row(1, watermark_ms)
        estimator.take(row_keys.with_source(b"P", source), row)


def published(estimator: Estimator) -> list[tuple[int, bool]]:
    """Revision and finality of the estimates of one turn."""
    estimate_due(estimator)
    return [(record.revision, record.final) for _, record in estimator.drain()]


def test_nothing_is_due_without_counts() -> None:
    estimator = new_estimator()
    close(estimator)
    assert estimator.due() == []


def test_provisional_estimate_follows_only_growth() -> None:
    estimator = new_estimator()
    count(estimator, packs=1)
    assert published(estimator) == [(1, False)]
    assert published(estimator) == []
    count(estimator, packs=1, source=1)
    assert published(estimator) == [(2, False)]
    count(estimator, packs=1, source=1)
    assert published(estimator) == []


def test_final_estimate_needs_all_partitions_closed_beyond_grace() -> None:
    estimator = new_estimator()
    count(estimator)
    assert published(estimator) == [(1, False)]
    close(estimator, CLOSES_MS)
    assert published(estimator) == []
    close(estimator, CLOSES_MS + 1, 0, 1, 2)
    assert published(estimator) == []
    close(estimator, CLOSES_MS + 1, 3)
    assert published(estimator) == [(1, True)]
    assert published(estimator) == []


def test_silent_partition_delays_the_final_estimate() -> None:
    estimator = new_estimator()
    count(estimator)
    close(estimator, DIES_MS, *range(PARTITIONS - 1))
    assert published(estimator) == [(1, False)]


def test_changed_counts_revise_the_final_estimate() -> None:
    estimator = new_estimator()
    count(estimator)
    close(estimator)
    assert published(estimator) == [(1, True)]
    count(estimator, packs=3, source=2)
    assert published(estimator) == [(4, True)]
    assert published(estimator) == []


def test_first_estimate_may_be_final() -> None:
    estimator = new_estimator()
    close(estimator)
    count(estimator)
    assert published(estimator) == [(1, True)]


@pytest.mark.parametrize(
    ("newest", "expected"),
    [(Published(1, False), [(1, True)]), (Published(1, True), []), (Published(0, False), [(1, True)])],
)
def test_estimates_of_a_former_owner_are_not_republished(
    newest: Published, expected: list[tuple[int, bool]]
) -> None:
    estimator = new_estimator({FRUITS: newest})
    count(estimator)
    close(estimator)
    assert published(estimator) == expected


@pytest.mark.parametrize(
    ("now_ms", "waits"), [(CLOSES_MS + IDLE_MILLISECONDS, False), (CLOSES_MS + IDLE_MILLISECONDS + 1, True)]
)
def test_windows_wait_for_idle_partitions_after_their_grace(now_ms: int, waits: bool) -> None:
    """And for those alone that have not passed it."""
    estimator = new_estimator()
    count(estimator)
    close(estimator, CLOSES_MS + 1, 0)
    close(estimator, CLOSES_MS, 1)
    close(estimator, 0, 2, 3)
    assert estimator.waited_for(now_ms) == (dict.fromkeys((1, 2, 3), CLOSES_MS) if waits else {})


def test_a_clock_that_is_behind_does_not_hold_windows_up() -> None:
    """Another partition's append times tell that the window is over."""
    estimator = new_estimator()
    count(estimator)
    close(estimator, CLOSES_MS + IDLE_MILLISECONDS + 1, 0)
    close(estimator, 0, 1, 2, 3)
    assert estimator.waited_for(0) == dict.fromkeys((1, 2, 3), CLOSES_MS)


def test_who_leads_is_asked_again_while_a_window_waits_for_long() -> None:
    """The leader of `counts` may have been replaced, and show an old end of them."""
    estimator = new_estimator()
    estimator._look_at_time(0)
    assert not estimator._waits_since
    assert not estimator._waits_long()
    count(estimator)
    close(estimator, CLOSES_MS + IDLE_MILLISECONDS + 1, 0)
    for later, asks in ((0.0, False), (LEADERS_SECONDS, True), (0.0, False)):
        estimator._look_at_time(0)
        estimator._waits_since -= later
        assert estimator._waits_long() == asks


@pytest.mark.parametrize("late", [False, True])
def test_a_window_that_waits_for_relays_needs_time_to_pass(late: bool) -> None:
    """Else a partition in which nothing is reported would never be beyond the longest wait."""
    estimator = new_estimator()
    count(estimator)
    close(estimator, CLOSES_MS + 1, 1, 2, 3)
    open_one = row_values.encode_progress(row_values.LedgerProgress(1, CLOSES_MS + 1, CLOSES_MS))
    progress = row_keys.encode_key(row_keys.SingleKey.PROGRESS)
    estimator.take(row_keys.with_source(progress, 0), open_one)
    now_ms = CLOSES_MS + IDLE_MILLISECONDS + WAITING_MILLISECONDS + late
    assert estimator.waited_for(now_ms) == ({0: CLOSES_MS} if late else {})


@pytest.mark.parametrize("packs", [0, 1])
def test_nothing_waits_without_counts_or_after_the_final_estimate(packs: int) -> None:
    estimator = new_estimator()
    close(estimator)
    if packs:
        count(estimator)
        assert published(estimator) == [(1, True)]
    assert estimator.waited_for(DIES_MS) == {}


def test_expiring_windows_are_not_estimated() -> None:
    """Partition 3 returns after an hour; by then the others have deleted their part of the window."""
    estimator = new_estimator()
    count(estimator, packs=5)
    count(estimator, packs=2, source=3)
    assert published(estimator) == [(7, False)]
    close(estimator, DIES_MS + 1, 0, 1, 2)
    key = row_keys.encode_key(row_keys.CountKey(*FRUITS, 0, 0))
    estimator.take(row_keys.with_source(key, 0), None)
    count(estimator, packs=9, source=3)
    close(estimator, DIES_MS + 1, 3)
    assert published(estimator) == []


def test_window_is_estimated_until_the_millisecond_it_expires() -> None:
    estimator = new_estimator()
    count(estimator)
    close(estimator, DIES_MS)
    assert published(estimator) == [(1, True)]


def test_no_estimate_below_the_minimum_of_reports() -> None:
    estimator = new_estimator()
    count(estimator, counts=(1, 2, 0, 0))
    close(estimator)
    assert FRUIT.minimum_reports == 6
    assert published(estimator) == []
    assert estimator.due() == []
    count(estimator, packs=2, counts=(3, 2, 1, 0))
    assert published(estimator) == [(2, True)]


def test_counts_of_an_unknown_collection_are_left_unchanged() -> None:
    estimator = new_estimator()
    key = row_keys.CountKey(replace(FRUIT, name="stranger").fingerprint, T0, 0, 0)
    counters = row_values.CounterPage(9, 1, np.full(4, 9))
    estimator.take(row_keys.with_source(row_keys.encode_key(key), 0), row_values.encode_counters(counters))
    assert estimator.due() == []


def test_oldest_window_is_estimated_first() -> None:
    estimator = new_estimator()
    for start in (T0 + 20, T0, T0 + 10):
        key = row_keys.encode_key(row_keys.CountKey(FRUIT.fingerprint, start, 0, 0))
        row = row_values.encode_counters(row_values.CounterPage(9, 1, np.array([3, 3, 3, 0])))
        estimator.take(row_keys.with_source(key, 0), row)
    assert [window[1] for window, _ in estimator.due()] == [T0, T0 + 10, T0 + 20]


def test_estimate_covers_all_partitions_and_is_drained_once() -> None:
    estimator = new_estimator()
    count(estimator, counts=(5, 3, 2, 0), packs=2)
    count(estimator, counts=(1, 0, 0, 4), source=2)
    estimate_due(estimator)
    [(window, record)] = estimator.drain()
    assert window == FRUITS
    assert (record.reports, record.packs, record.collection) == (18, 3, "fruit")
    assert estimator.published == {FRUITS: Published(3, False)}
    assert estimator.drain() == []


def test_all_values_are_published_only_in_final_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the collection asks for them."""
    monkeypatch.setattr(window_estimate, "VALUES_PER_RECORD", 2)
    asking = {FRUIT.fingerprint: replace(FRUIT, publish_all=True)}
    for collections, parts in ((asking, [1, 2]), ({}, [1])):
        estimator = new_estimator()
        estimator.collections = {**estimator.collections, **collections}
        count(estimator)
        estimate_due(estimator)
        assert [(record.part, record.parts) for _, record in estimator.drain()] == [(1, 1)]
        close(estimator)
        estimate_due(estimator)
        records = [record for _, record in estimator.drain()]
        assert [(record.part, record.final) for record in records] == [(part, True) for part in parts]
        assert estimator.published == {FRUITS: Published(1, True)}


def test_newer_of_two_undrained_estimates_is_published() -> None:
    estimator = new_estimator()
    for packs in (1, 2):
        count(estimator, packs=packs)
        estimate_due(estimator)
    assert [record.revision for _, record in estimator.drain()] == [2]


@pytest.mark.parametrize(
    ("cohort", "bits", "count"), [(0, 16, 8), (PLACE.cohorts, 16, 1), (0, 17, 1)], ids=repr
)
def test_counts_that_no_estimate_fits_are_counted_and_logged(cohort: int, bits: int, count: int) -> None:
    """More set bits than reports, or an unknown cohort or bit: rows that were tampered with."""
    estimator = new_estimator()
    key = row_keys.encode_key(row_keys.CountKey(PLACE.fingerprint, T0, cohort, 0))
    counters = row_values.CounterPage(7, 1, np.full(bits, count))
    estimator.take(row_keys.with_source(key, 0), row_values.encode_counters(counters))
    with capture_logs() as logs:
        estimate_due(estimator)
    assert estimator.drain() == []
    assert [(entry["event"], entry["log_level"], entry["collection"]) for entry in logs] == [
        ("no estimate", "error", "place")
    ]
    failures = estimator.metrics.registry.get_sample_value(
        "deniable_estimate_failures_total", {"collection": "place"}
    )
    assert failures == 1
    assert estimator.due() == []


def test_notes_are_dropped_once_counts_are_deleted_everywhere() -> None:
    estimator = new_estimator({FRUITS: Published(2, True)})
    estimator.caught_up = True
    count(estimator, source=1)
    close(estimator, DIES_MS + 1, 2)
    assert estimator.forgotten() == []
    close(estimator, DIES_MS, 2)
    estimator.take(row_keys.with_source(row_keys.encode_key(row_keys.CountKey(*FRUITS, 0, 0)), 1), None)
    assert estimator.forgotten() == []
    close(estimator, DIES_MS + 1, 2)
    assert list(estimator.forgotten()) == [FRUITS]
    assert estimator.forgotten() == []
    assert estimator.published == {}


def test_notes_are_kept_until_the_counts_are_read() -> None:
    estimator = new_estimator({FRUITS: Published(2, True)})
    close(estimator, DIES_MS + 1, 2)
    assert estimator.forgotten() == []
    assert estimator.published == {FRUITS: Published(2, True)}


@pytest.mark.parametrize(("was_final", "shown"), [(True, 1), (False, 0)])
def test_replaced_final_estimate_is_counted(was_final: bool, shown: int) -> None:
    """Once it is committed; a first final estimate replaces none."""
    estimator = new_estimator({FRUITS: Published(2, was_final)})
    count(estimator, packs=3)
    close(estimator)
    estimate_due(estimator)
    assert [(record.revision, record.final) for _, record in estimator.drain()] == [(3, True)]
    assert revised(estimator) == 0
    estimator.show_published()
    assert revised(estimator) == shown


def test_fewer_packs_of_a_closed_window_replace_its_final_estimate() -> None:
    """After a rebuild under other terms; until the window is closed again, the former estimate stands."""
    estimator = new_estimator({FRUITS: Published(4, True)})
    count(estimator, packs=3)
    assert published(estimator) == []
    close(estimator)
    assert published(estimator) == [(5, True)]
    assert estimator.drained_notes() == {FRUITS: Published(5, True, ahead=2)}
    assert published(estimator) == []


def test_shrunk_window_below_the_minimum_is_estimated_again() -> None:
    """Else the former estimate, of packs that do not count, would stay the newest."""
    estimator = new_estimator({FRUITS: Published(4, True)})
    count(estimator, packs=3, counts=(1, 0, 0, 0))
    close(estimator)
    assert published(estimator) == [(5, True)]


def test_published_window_without_counts_is_replaced_by_an_empty_record() -> None:
    """Once every partition has closed it, and unless one has deleted it."""
    estimator = new_estimator({FRUITS: Published(4, True)})
    close(estimator, CLOSES_MS + 1, 0)
    assert published(estimator) == []
    close(estimator)
    estimate_due(estimator)
    [(_, record)] = estimator.drain()
    assert (record.revision, record.final, record.reports, record.values) == (5, True, 0, [])
    [counts] = estimator.drained_counts()
    assert (counts.counts.packs, counts.counts.counts.sum()) == (0, 0)
    assert estimator.drained_notes() == {FRUITS: Published(5, True, ahead=5)}
    assert published(estimator) == []
    dying = new_estimator({FRUITS: Published(4, True)})
    close(dying, DIES_MS + 1)
    assert published(dying) == []


def test_unpublished_final_estimate_is_not_revised() -> None:
    estimator = new_estimator()
    close(estimator)
    for packs in (3, 4):
        count(estimator, packs=packs)
        estimate_due(estimator)
    assert [(record.revision, record.final) for _, record in estimator.drain()] == [(4, True)]
    estimator.show_published()
    assert revised(estimator) == 0


def test_estimates_run_in_separate_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow estimate never delays the event loop, checkpoints or openings."""
    threads, make = [], Estimator.estimate_window

    def shown(self: Estimator, window: Window, *, final: bool) -> WindowResult | None:
        threads.append(threading.current_thread().name)
        return make(self, window, final=final)

    monkeypatch.setattr(Estimator, "estimate_window", shown)
    estimator = new_estimator()
    count(estimator)
    estimate_due(estimator)
    assert [name.split("_")[0] for name in threads] == ["estimate"]


def revised(estimator: Estimator) -> float | None:
    shown = estimator.metrics.registry.get_sample_value
    return shown("deniable_finals_revised_total", {"collection": "fruit"})


def read_counts(*rows_of_others: tuple[bytes, bytes]) -> list[tuple[object, ...]]:
    """Warnings of an estimator that reads these records: event, partition, record count, first offset."""
    log, estimator = MemoryLog(), new_estimator()
    for key, value in rows_of_others:
        log.append("counts", 0, value, key)

    async def run() -> None:
        running = asyncio.create_task(estimator.run(log.reader("", "counts", 0)))
        while not (estimator.caught_up or running.done()):  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0.001)
        if running.done():
            await running
        running.cancel()

    with capture_logs() as logs:
        asyncio.run(run())
    return [(line["event"], line["partition"], line["records"], line["first_offset"]) for line in logs]


def test_record_of_another_program_is_skipped() -> None:
    """Its key is foreign, so none of our counts is missing."""
    looks_like_terms = b"Temperature"
    assert read_counts((b"k", b"not json"), (looks_like_terms, b"not json")) == [
        ("skipped foreign records", 0, 2, 0)
    ]


def test_damaged_row_is_refused(pin_messages: PinMessages) -> None:
    key = row_keys.with_source(row_keys.encode_key(row_keys.CountKey(*FRUITS, 0, 0)), 0)
    pin_messages({"a damaged row": lambda: read_counts((key, b"\x02"))})


def test_everything_is_read_before_estimating(monkeypatch: pytest.MonkeyPatch) -> None:
    """No estimate uses counts that are only partly read.

    One row arrives while the others are read, as after compaction.
    """
    log = MemoryLog()
    key = row_keys.encode_key(row_keys.CountKey(*FRUITS, 0, 0))
    row = row_values.encode_counters(row_values.CounterPage(9, 1, np.array([4, 3, 2, 0])))
    for source in range(PARTITIONS - 1):
        log.append("counts", 0, row, row_keys.with_source(key, source))
    moved = [PARTITIONS - 1]
    estimator = new_estimator()
    reader = log.reader("", "counts", 0)
    everything = reader.poll
    packs: list[int] = []

    async def one_by_one(milliseconds: int = 0) -> list[KafkaRecord]:
        await asyncio.sleep(0)
        while moved:
            log.append("counts", 0, row, row_keys.with_source(key, moved.pop()))
        batch = await everything(milliseconds)
        reader._next = batch[0].offset + 1 if batch else reader._next
        return batch[:1]

    async def run() -> None:
        loop, estimated = asyncio.get_running_loop(), asyncio.Event()

        def make(window: Window, *, final: bool) -> None:
            packs.append(estimator.merged.packs(window))
            loop.call_soon_threadsafe(estimated.set)

        monkeypatch.setattr(estimator, "estimate_window", make)
        running = asyncio.create_task(estimator.run(reader))
        async with asyncio.timeout(60):
            await estimated.wait()
        running.cancel()
        await asyncio.wait([running])

    monkeypatch.setattr(reader, "poll", one_by_one)
    asyncio.run(run())
    assert packs[:1] == [PARTITIONS]
    assert estimator.caught_up


def test_catching_up_leaves_early_estimates_to_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts of long ago: after an early estimate, the next rests, and a final one does not."""
    monkeypatch.setattr(estimator_module, "BEHIND_REST", 1e6)
    estimator = new_estimator()
    close(estimator, CLOSES_MS - 10)
    count(estimator, packs=1)
    assert published(estimator) == [(1, False)]
    count(estimator, packs=2)
    assert published(estimator) == []
    close(estimator)
    assert published(estimator) == [(2, True)]


def test_early_estimates_rest_but_for_the_first_of_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator_module, "REST", 1e6)
    estimator = new_estimator()
    estimator.longest_rest_seconds = 1000.0
    count(estimator, packs=1)
    assert published(estimator) == [(1, False)]
    count(estimator, packs=2)
    count(estimator, packs=1, counts=(60,) * 16)
    estimate_due(estimator)
    assert [record.collection for _, record in estimator.drain()] == ["place"]
    assert estimator._patience() == estimator_module.TICK_SECONDS
    close(estimator)
    assert {record.final for _, record in (estimate_due(estimator), estimator.drain())[1]} == {True}


def test_no_rest_of_early_estimates_while_counts_are_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator_module, "BEHIND_REST", 1e6)
    estimator = new_estimator()
    monkeypatch.setattr(estimator_module.time, "time", lambda: T0 + estimator.behind_seconds)
    close(estimator, T0 * 1000 + 1)
    count(estimator, packs=1)
    assert published(estimator) == [(1, False)]
    count(estimator, packs=2)
    assert published(estimator) == [(2, False)]


def test_windows_estimated_least_often_are_next() -> None:
    estimator = new_estimator()
    count(estimator, packs=3)
    assert published(estimator) == [(3, False)]
    count(estimator, packs=4)
    count(estimator, packs=1, counts=(5,) * PLACE.width)
    assert [window[0] for window, _ in estimator.due()] == [PLACE.fingerprint, FRUIT.fingerprint]
