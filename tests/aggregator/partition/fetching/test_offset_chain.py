"""The chain of fetched offsets: holes in the log are known, and going back breaks it."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.ledger.runs.run import UNKNOWN_EPOCH, Run
from deniable.aggregator.partition.fetching.last_record import LastRecord, decode_last_record
from deniable.aggregator.partition.fetching.offset_chain import OffsetChain
from tests.support.messages import PinMessages


@pytest.mark.slow
@given(st.sets(st.integers(10, 60)), st.data())
def test_chain_visits_every_fetched_record_once(present: set[int], data: st.DataObject) -> None:
    """For any division of the log into fetches, and any holes in between."""
    offsets = sorted(present)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(offsets)))))
    chain = OffsetChain(10)
    for first, last in zip([0, *cuts], [*cuts, len(offsets)], strict=True):
        chain.admit(offsets[first:last], 0)
    visited, position = [], 10
    while position < chain.cursor:
        record = chain.follows(position)
        visited.append(record)
        position = record + 1
        chain.passed(position)
    assert visited == offsets
    assert chain.cursor == (offsets[-1] + 1 if offsets else 10)


def test_hole_is_crossed_only_from_its_beginning() -> None:
    chain = OffsetChain(5)
    chain.admit([5, 6, 9], 10)
    assert [chain.follows(position) for position in (5, 6, 7, 8, 9, 10)] == [5, 6, 9, 8, 9, 10]


def test_fetch_position_is_beyond_trailing_holes() -> None:
    chain = OffsetChain(5)
    chain.admit([5], 8)
    assert (chain.cursor, chain.fetched_until) == (6, 8)
    chain.admit([], 9)
    assert (chain.cursor, chain.fetched_until) == (6, 9)


def test_unknown_fetch_position_is_the_cursor() -> None:
    chain = OffsetChain(5)
    chain.admit([5, 6], 0)
    assert chain.fetched_until == 7


def test_holes_before_the_position_are_forgotten() -> None:
    chain = OffsetChain(0)
    chain.admit([0, 2, 4, 6], 7)
    chain.passed(3)
    assert [chain.follows(position) for position in (1, 3, 5)] == [1, 4, 6]


def test_trailing_hole_is_passed_once_reached() -> None:
    chain = OffsetChain(5)
    chain.admit([5, 6], 9)
    assert [chain.pass_hole(5), chain.pass_hole(6)] == [5, 6]
    assert chain.pass_hole(7) == 9
    chain.admit([12], 13)
    assert chain.follows(9) == 12


@pytest.mark.parametrize(
    ("offsets", "fetched_until", "hole"),
    [
        ([], 0, None),
        ([], 5, None),
        ([], 9, 5),
        ([5, 6], 7, None),
        ([5, 6], 0, None),
        ([6, 7], 8, 5),
        ([5, 6, 9], 10, 7),
        ([5, 6], 9, 7),
        ([6, 9], 20, 5),
    ],
)
def test_first_offset_that_a_fetch_skipped_is_known(
    offsets: list[int], fetched_until: int, hole: int | None
) -> None:
    """Before, within or after its records, and without records: retention may have deleted it."""
    assert OffsetChain(5).first_hole(offsets, fetched_until) == hole


@given(st.sets(st.integers(10, 40)), st.integers(8, 42), st.integers(0, 30), st.integers(1, 30))
def test_following_records_are_those_that_follow_one_by_one(
    present: set[int], position: int, first: int, count: int
) -> None:
    """Whatever part of the log is delivered, wherever the ledger is."""
    offsets = sorted(present)
    chain = OffsetChain(10)
    chain.admit(offsets, 0)
    delivered = np.array(offsets[first : first + count], np.int64)
    if len(delivered):
        counted, at = [], position
        for offset in delivered.tolist():
            if offset == chain.follows(at):
                counted.append(offset)
                at = offset + 1
        assert delivered[chain.following(position, delivered)].tolist() == counted


def test_hole_that_the_chain_does_not_know_is_not_crossed() -> None:
    """A delivery of before a rewind: what is beyond the hole is fetched again."""
    chain = OffsetChain(5)
    delivered = np.array([5, 6, 9, 10])
    assert delivered[chain.following(5, delivered)].tolist() == [5, 6]


def test_messages(pin_messages: PinMessages) -> None:
    def admit(again: list[int]) -> None:
        chain = OffsetChain(5)
        chain.admit([5, 6], 7)
        chain.admit(again, 8)

    pin_messages({f"{each} after [5, 6]": partial(admit, each) for each in ([6], [4, 5], [7, 6])})


def run_at(first: int, *append_ms: int, epoch: int = 3) -> Run:
    """Consecutive records of one leader."""
    times = np.array(append_ms, np.int64)
    zeros = np.zeros_like(times)
    return Run(b"", np.arange(first, first + len(times)), times, zeros, zeros, lambda _: [], epoch)


def test_chain_continues_behind_the_last_counted_record() -> None:
    """It begins at that record; the position may be further, beyond a hole that the fetch does not show."""
    last = LastRecord(9, 3, 70)
    for position, followers in ((10, [10, 11, 12]), (11, [11, 12])):
        chain = OffsetChain(position, last)
        assert (chain.cursor, chain.is_proven) == (9, False)
        left = chain.prove([run_at(9, 70), run_at(10, 71, 72), run_at(12, 80, epoch=4)])
        assert chain.is_proven
        assert [int(each) for run in left for each in run.offsets] == followers
        assert chain.cursor == position
        assert chain.prove(left) == left


@pytest.mark.parametrize("found", [run_at(9, 71), run_at(9, 70, epoch=4), run_at(10, 70)])
def test_another_record_in_place_of_the_last_counted_one_is_noticed(found: Run) -> None:
    chain = OffsetChain(10, LastRecord(9, 3, 70))
    assert chain.prove([found]) == []
    assert (chain.is_proven, chain.other) == (False, LastRecord.of(found, 0))


def test_last_record_is_stored_as_text() -> None:
    last = LastRecord(9, 3, 70)
    assert decode_last_record(last.encode()) == last
    for text in ("", "another program's", "1 2 3", "2 9 3 70", "1 9 3 x", "1 9 3 70 1"):
        assert decode_last_record(text) is None
    assert last.is_same(last._replace(epoch=UNKNOWN_EPOCH))
