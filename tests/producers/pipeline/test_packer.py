"""Each pack has one collection, window and cohort; every report is packed once, shuffled."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.pipeline.packer import BufferKey, Packer, seal
from deniable.protocol.wire import MAX_RECORD_BYTES, bit_rows, buckets, decode, encode
from tests.support.producers.sources import RepeatableWords

LATENCY = Collection("latency", KRR.from_epsilon(1000, 1.0))
DESTINATION = Collection("destination", Rappor.from_probabilities(16, 2, 8, 0.25, 0.35, 0.65))
WIDE = Collection("wide", Rappor.from_probabilities(4096, 2, 8, 0.25, 0.35, 0.65))


def packer(*collections, pack_reports=3, seed=1):
    return Packer(collections, pack_reports, 1.0, RepeatableWords(seed))


def krr_rows(numbers):
    return np.array(numbers, "<u2").view(np.uint8).reshape(-1, 2)


def add(target, numbers, window=0, cohort=0, now=0.0):
    count = len(numbers)
    windows, cohorts = np.full(count, window), np.full(count, cohort, np.uint16)
    return target.add(LATENCY.fingerprint, windows, cohorts, krr_rows(numbers), now)


def test_pack_is_sent_when_full():
    target = packer(LATENCY)
    assert add(target, [1, 2]) == []
    (pack,) = add(target, [3])
    assert sorted(buckets(pack).tolist()) == [1, 2, 3]
    assert (pack.mechanism, pack.width, pack.reports) == (1, 1000, 3)
    assert pack.fingerprint == LATENCY.fingerprint
    assert target.flush() == []


def test_pack_is_sent_when_its_first_report_is_old():
    target = packer(LATENCY)
    add(target, [1], now=10.0)
    add(target, [2], now=10.9)
    assert target.due(10.99) == []
    (pack,) = target.due(11.0)
    assert sorted(buckets(pack).tolist()) == [1, 2]
    assert target.due(100.0) == []


def test_reports_left_after_a_full_pack_are_new():
    target = packer(LATENCY)
    add(target, [1, 2], now=0.0)
    (pack,) = add(target, [3, 4], now=0.5)
    assert sorted(buckets(pack).tolist()) == [1, 2, 3]
    assert target.due(1.0) == []
    (rest,) = target.due(1.5)
    assert buckets(rest).tolist() == [4]


@pytest.mark.slow
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 999)), max_size=12),
        max_size=5,
    ),
    st.integers(1, 5),
)
def test_every_report_is_packed_once_with_its_window_and_cohort(batches, pack_reports):
    target = packer(LATENCY, pack_reports=pack_reports)
    packs = []
    for batch in batches:
        windows = np.array([60 * window for window, _, _ in batch], np.int64)
        cohorts = np.array([cohort for _, cohort, _ in batch], np.uint16)
        rows = krr_rows([number for _, _, number in batch])
        packs += target.add(LATENCY.fingerprint, windows, cohorts, rows, 0.0)
    assert all(pack.reports == pack_reports for pack in packs)
    packs += target.flush()
    left = Counter((p.window_start // 60, p.cohort, number) for p in packs for number in buckets(p).tolist())
    assert left == Counter(report for batch in batches for report in batch)
    assert all(1 <= pack.reports <= pack_reports for pack in packs)
    assert len({pack.pack_id for pack in packs}) == len(packs)
    assert all(decode(encode(pack)) == pack for pack in packs)


def test_collections_are_kept_apart():
    target = packer(LATENCY, DESTINATION)
    add(target, [1])
    row = np.array([[1, 128]], np.uint8)
    target.add(DESTINATION.fingerprint, np.zeros(1, np.int64), np.array([5], np.uint16), row, 0.0)
    latency, destination = target.flush()
    assert buckets(latency).tolist() == [1]
    assert np.array_equal(bit_rows(destination), row)
    assert (destination.mechanism, destination.width, destination.cohort) == (2, 16, 5)


def test_each_change_is_returned_once_as_a_record():
    target = packer(LATENCY, pack_reports=3)
    add(target, [1, 2])
    add(target, [7], window=60, cohort=4)
    changes = target.changes()
    assert set(changes) == {BufferKey(LATENCY.fingerprint, 0, 0), BufferKey(LATENCY.fingerprint, 60, 4)}
    assert buckets(decode(changes[LATENCY.fingerprint, 0, 0])).tolist() == [1, 2]
    assert target.changes() == {}
    add(target, [3])
    assert target.changes() == {(LATENCY.fingerprint, 0, 0): b""}
    target.flush()
    assert target.changes() == {(LATENCY.fingerprint, 60, 4): b""}


def test_other_producer_packs_a_buffer_from_its_record():
    """It needs no collection: a record describes its reports completely."""
    target = packer(LATENCY, pack_reports=10)
    add(target, list(range(8)), window=60, cohort=4)
    (record,) = target.changes().values()
    words = RepeatableWords(5)
    packs = [seal(decode(record), words) for _ in range(2)]
    assert [sorted(buckets(pack).tolist()) for pack in packs] == [list(range(8))] * 2
    assert packs[0].pack_id != packs[1].pack_id != bytes(16)
    assert (packs[0].window_start, packs[0].cohort, packs[0].width) == (60, 4, 1000)


def test_restored_packer_keeps_its_reports():
    target = packer(LATENCY)
    add(target, [1, 2])
    target.changes()
    state = target.state()
    add(target, [3, 4])
    add(target, [5], window=60)
    target.restore(state)
    assert target.changes() == {}
    (pack,) = target.flush()
    assert sorted(buckets(pack).tolist()) == [1, 2]


def test_record_is_never_oversized():
    target = packer(WIDE, pack_reports=1_000_000)
    rows = np.zeros((2000, 512), np.uint8)
    packs = target.add(WIDE.fingerprint, np.zeros(2000, np.int64), np.zeros(2000, np.uint16), rows, 0.0)
    assert [pack.reports for pack in packs + target.flush()] == [1953, 47]
    assert len(encode(packs[0])) == 52 + 1953 * 512 <= MAX_RECORD_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 9])
def test_reports_are_shuffled(place):
    """Positions of the first and last of ten reports in 4,000 packs: chi-square, 9 degrees of freedom.

    48 is exceeded with probability 3e-7; unshuffled reports give 36,000.
    """
    target = packer(LATENCY, pack_reports=10, seed=2)
    packs = [pack for _ in range(4000) for pack in add(target, list(range(10)))]
    landed = np.bincount([buckets(pack).tolist().index(place) for pack in packs], minlength=10)
    assert ((landed - 400) ** 2 / 400).sum() < 48


def test_neighbours_are_shuffled_apart():
    """How often the next report of 1,000 still comes next, in 400 packs: Poisson, 400 expected.

    More than 510 or less than 295 happen with probability below 1e-6. An order that keeps one neighbour in a
    hundred gives 4,000 more; a rotation keeps nearly all.
    """
    target = packer(LATENCY, pack_reports=1000, seed=3)
    packs = [pack for _ in range(400) for pack in add(target, list(range(1000)))]
    steps = np.concatenate([np.diff(buckets(pack).astype(np.int64)) for pack in packs])
    assert 295 <= (steps == 1).sum() <= 510
    assert 295 <= (steps == -1).sum() <= 510
