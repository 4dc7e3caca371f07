"""The board shows the newest window, and of it the estimate that wins."""

import pytest
from builders import FRUIT, PLACE, T0
from hypothesis import given
from hypothesis import strategies as st

from aggregator import estimate_record
from aggregator.board import SETTLE_SECONDS, Board
from aggregator.estimate_record import EstimateRecord


def estimate(
    name: str = "fruit", window: int = T0, revision: int = 1, *, final: bool = False
) -> EstimateRecord:
    return EstimateRecord(
        version=1,
        collection=name,
        fingerprint="0" * 16,
        window_start=window,
        window_end=window + 10,
        revision=revision,
        final=final,
        reports=10,
        packs=revision,
        rejected=0,
        mechanism="k-rr",
        estimator="mle",
        epsilon=1.0,
        values=["a"],
        frequency=[1.0],
        count=[10.0],
        std_error=[0.1],
        low=[0.9],
        high=[1.0],
        significant=[True],
        omitted=0,
        other=None,
        diagnostics={},
    )


def taken(board: Board, record: EstimateRecord) -> bool:
    """Whether the board shows this record from now on."""
    shown = board.take(estimate_record.encode(record))
    assert shown in (None, record)
    assert (board.newest[record.collection] == record) == (shown is not None)
    return shown is not None


def test_the_newest_window_wins_whatever_its_revision() -> None:
    board = Board()
    assert taken(board, estimate(window=T0, revision=9, final=True))
    assert taken(board, estimate(window=T0 + 10))
    assert not taken(board, estimate(window=T0, revision=99, final=True))


def test_within_a_window_the_winning_estimate_is_shown() -> None:
    board = Board()
    assert taken(board, estimate(revision=2))
    assert not taken(board, estimate(revision=1, final=True))
    assert taken(board, estimate(revision=2, final=True))
    assert not taken(board, estimate(revision=2))
    assert taken(board, estimate(revision=3))


def test_collections_do_not_disturb_each_other() -> None:
    board = Board()
    assert taken(board, estimate(FRUIT.name, T0 + 10))
    assert taken(board, estimate(PLACE.name, T0))
    assert board.newest.keys() == {"fruit", "place"}


@pytest.mark.parametrize("data", [b"", b'{"collection":"\xff"}', b'{"x":' + b"[" * 10**5, b'{"version":1}'])
def test_what_is_no_estimate_is_ignored(data: bytes) -> None:
    board = Board()
    board.take(estimate_record.encode(estimate()))
    assert board.take(data) is None
    assert board.newest == {"fruit": estimate()}


@given(st.permutations([(window, revision) for window in (T0, T0 + 10) for revision in (1, 2, 3)]))
def test_the_order_of_arrival_does_not_matter(order: list[tuple[int, int]]) -> None:
    board = Board()
    for window, revision in order:
        board.take(estimate_record.encode(estimate(window=window, revision=revision)))
    assert board.newest == {"fruit": estimate(window=T0 + 10, revision=3)}


@pytest.mark.parametrize(("final", "windows"), [(False, 1), (True, 2)])
def test_an_estimate_is_stale_when_its_successor_should_be_here(final: bool, windows: int) -> None:
    """After a provisional one that is the final one of its window; after a final one, the next window's."""
    due = T0 + windows * FRUIT.window_seconds + FRUIT.grace_seconds + SETTLE_SECONDS
    board = Board()
    board.take(estimate_record.encode(estimate(final=final)))
    assert board.stale([FRUIT, PLACE], due) == {}
    assert board.stale([FRUIT, PLACE], due + 0.1) == {"fruit": due}
    board.take(estimate_record.encode(estimate(window=T0 + windows * FRUIT.window_seconds)))
    assert board.stale([FRUIT, PLACE], due + 0.1) == {}
