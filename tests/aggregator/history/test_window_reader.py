"""Joining windows: each complete window counts once, in its newest revision."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from deniable.aggregator.history import window_reader
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.window_reader import Joined, join_windows
from deniable.aggregator.records.final_window import FinalWindow, encode_pages
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.cluster.reading.topic_reader import CLOCKS_MILLISECONDS
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.aggregator.builders import DEPLOYMENT, FRUIT, PARTITIONS, PLACE, T0, TOPICS, MemoryLog

HOME = TOPICS.counts_partition(FRUIT.fingerprint)
LARGE = replace(PLACE, mechanism=Rappor.from_probabilities(64, 2, 700, 0.25, 0.35, 0.65))  # 2 pages
MINUTE = Period(T0, T0 + 60)


def window_of(
    collection: Collection = FRUIT, start: int = T0, packs: int = 1, seed: int = 0, rejected: int = 0
) -> FinalWindow:
    chance = np.random.default_rng((start, packs, seed))
    counts = chance.integers(0, 100, (collection.cohorts, collection.width))
    sizes = chance.integers(100, 200, collection.cohorts)
    return FinalWindow.of(collection, start, WindowCounts(counts, sizes, packs, rejected))


class Topic:
    """The topic `windows` in memory, and the arguments to read it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = MemoryLog()
        self.readings = 0
        monkeypatch.setattr(window_reader, "records_since", self._read)

    def _read(self, servers: str, topic: str, partitions: range, unix_ms: int) -> object:
        assert (topic, partitions) == (TOPICS.windows, range(PARTITIONS))
        self.readings += 1
        return self.log.since(servers, topic, partitions, unix_ms)

    def write(self, window: FinalWindow, *pages: int, append_ms: int | None = None) -> None:
        """Some of its pages, by default all."""
        records = list(encode_pages(window))
        home = TOPICS.counts_partition(window.fingerprint)
        written = (window.window_start + 15) * 1000 if append_ms is None else append_ms
        for key, value in [records[page] for page in pages] if pages else records:
            self.log.append(TOPICS.windows, home, value, key, written)

    def join(self, collection: Collection = FRUIT, period: Period = MINUTE) -> Joined:
        return asyncio.run(join_windows(DEPLOYMENT.cluster, DEPLOYMENT.topics, collection, period))


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    return Topic(monkeypatch)


def check_sum(joined: Joined, *windows: FinalWindow) -> None:
    np.testing.assert_array_equal(joined.counts.counts, sum(each.counts.counts for each in windows))
    np.testing.assert_array_equal(
        joined.counts.cohort_sizes, sum(each.counts.cohort_sizes for each in windows)
    )
    assert joined.counts.packs == sum(each.counts.packs for each in windows)
    assert joined.counts.rejected == sum(each.counts.rejected for each in windows)
    assert dict(joined.reports) == {each.window_start: each.counts.reports for each in windows}
    assert list(joined.reports) == sorted(joined.reports)


def test_empty_topic_has_no_windows(topic: Topic) -> None:
    joined = topic.join(PLACE)
    assert (joined.counts.reports, joined.counts.counts.shape) == (0, (3, 16))
    assert (joined.reports, joined.incomplete, joined.others, joined.foreign) == ({}, [], {}, 0)


@pytest.mark.parametrize("collection", [FRUIT, PLACE, LARGE], ids=["k-rr", "rappor", "two pages"])
def test_windows_are_joined_across_gaps(topic: Topic, collection: Collection) -> None:
    stranger = replace(PLACE if collection is FRUIT else FRUIT, name="stranger")
    windows = [window_of(collection, T0 + 10 * i, packs=i + 1, rejected=i) for i in (3, 0, 5)]
    for window in windows:
        topic.write(window_of(stranger, window.window_start))
        topic.write(window)
    joined = topic.join(collection)
    check_sum(joined, *windows)
    assert (joined.incomplete, joined.others, joined.foreign, topic.readings) == ([], {}, 0, 1)


def test_only_windows_within_the_period_count(topic: Topic) -> None:
    windows = [window_of(start=T0 + 10 * i) for i in range(6)]
    for window in windows:
        topic.write(window)
    check_sum(topic.join(period=Period(T0 + 10, T0 + 40)), *windows[1:4])
    check_sum(topic.join(period=Period(T0 + 11, T0 + 39)), windows[2])


@pytest.mark.parametrize("collection", [FRUIT, LARGE], ids=["one page", "two pages"])
def test_higher_revision_replaces_the_lower(topic: Topic, collection: Collection) -> None:
    """In any order and any number of revisions; the topic is read at most one more time."""
    first, other = window_of(collection, packs=3), window_of(collection, T0 + 10)
    newer, newest = window_of(collection, packs=4), window_of(collection, packs=9)
    for window in (first, other, newer, newest):
        topic.write(window)
    check_sum(topic.join(collection), newest, other)
    assert topic.readings == 2


def test_later_result_of_fewer_packs_wins(topic: Topic) -> None:
    """As after a rebuild under other terms."""
    newest = window_of(packs=3)
    topic.write(window_of(packs=4))
    topic.write(newest)
    check_sum(topic.join(), newest)


def test_rewritten_revision_counts_once(topic: Topic) -> None:
    """As after `replay --rebuild`, possibly under other terms."""
    again = window_of(packs=4, seed=2)
    for window in (window_of(packs=4, seed=1), again):
        topic.write(window)
    check_sum(topic.join(), again)


def test_window_without_its_first_pages_is_incomplete(topic: Topic) -> None:
    whole = window_of(LARGE, T0 + 10)
    topic.write(window_of(LARGE), 1)
    topic.write(whole)
    joined = topic.join(LARGE)
    check_sum(joined, whole)
    assert joined.incomplete == [T0]


@pytest.mark.parametrize("pages", [(0,), (1,)], ids=repr)
def test_older_revision_does_not_replace_an_incomplete_one(topic: Topic, pages: tuple[int, ...]) -> None:
    other = window_of(LARGE, T0 + 10)
    for window in (window_of(LARGE, packs=3), other):
        topic.write(window)
    topic.write(window_of(LARGE, packs=4), *pages)
    joined = topic.join(LARGE)
    check_sum(joined, other)
    assert joined.incomplete == [T0]


def test_windows_under_other_parameters_are_listed(topic: Topic) -> None:
    changed = [replace(FRUIT, values=("apple", "fig", n)) for n in ("lime", "plum")]
    assert len({TOPICS.counts_partition(each.fingerprint) for each in (FRUIT, *changed)}) > 1
    mine = window_of()
    topic.write(mine)
    for i in range(3):
        topic.write(window_of(changed[0], T0 + 10 * i))
    topic.write(window_of(changed[1]))
    topic.write(window_of(changed[1], packs=2))
    topic.write(window_of(changed[1], T0 + 60))
    joined = topic.join()
    check_sum(joined, mine)
    assert joined.others == {changed[0].fingerprint: 3, changed[1].fingerprint: 1}


def test_foreign_records_are_skipped_and_counted(topic: Topic) -> None:
    mine = window_of()
    [(key, value)] = encode_pages(window_of(start=T0 + 10))
    off_grid = window_of(start=T0 + 1)
    slow = window_of(start=T0 + 20)._replace(window_seconds=20)
    for given in [(None, None), (b"k", b"{}"), (key, b"\x02" + value[1:]), (key, value[:-1])]:
        topic.log.append(TOPICS.windows, HOME, given[1], given[0], T0 * 1000)
    for window in (off_grid, slow, mine):
        topic.write(window)
    joined = topic.join()
    check_sum(joined, mine)
    assert joined.foreign == 6


def test_records_before_period_are_not_read(topic: Topic) -> None:
    """A window cannot be final before its end, except for clock differences."""
    kept = window_of(start=T0 + 10)
    topic.write(window_of(), append_ms=T0 * 1000 - CLOCKS_MILLISECONDS - 1)
    topic.write(kept, append_ms=T0 * 1000 - CLOCKS_MILLISECONDS)
    check_sum(topic.join(), kept)


def test_every_partition_is_read(topic: Topic) -> None:
    for partition in range(PARTITIONS):
        topic.log.append(TOPICS.windows, partition, b"", b"", T0 * 1000)
    assert topic.join().foreign == PARTITIONS
