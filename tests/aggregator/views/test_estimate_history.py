"""The history keeps the newest estimate of the last windows of known collections, within bounds."""

from dataclasses import replace

import pytest

from aggregator.records.estimate import EstimateRecord, decode_estimate, encode_estimate
from aggregator.views import estimate_history
from aggregator.views.estimate_history import VALUES, EstimateHistory, point_of
from estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of


def taken(board: EstimateHistory, record: EstimateRecord) -> bool:
    return board.take(encode_estimate(record)) is not None


def kept(board: EstimateHistory, window_start: int | None = None) -> EstimateRecord | None:
    data = board.record(FRUIT, window_start)
    return None if data is None else decode_estimate(data)


def window(step: int, **fields: object) -> EstimateRecord:
    return changed(estimate_of(), window_start=T0 + 10 * step, **fields)


def test_each_window_keeps_its_newest_estimate() -> None:
    board = EstimateHistory([FRUIT])
    assert kept(board) is None
    assert taken(board, window(1, revision=5))
    assert taken(board, window(0, revision=9, final=True))
    assert not taken(board, window(0, revision=8))
    assert not taken(board, window(0, revision=9, final=False))
    assert kept(board) == kept(board, T0 + 10) == board.newest["fruit"] == window(1, revision=5)
    assert kept(board, T0) == window(0, revision=9, final=True)
    assert kept(board, T0 + 20) is None
    assert board.starts(FRUIT) == [T0, T0 + 10]


def test_the_oldest_windows_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_history, "WINDOWS", 3)
    board = EstimateHistory([FRUIT])
    for step in (2, 0, 3, 1):
        assert taken(board, window(step))
    assert board.starts(FRUIT) == [T0 + 10, T0 + 20, T0 + 30]
    assert not taken(board, window(0))  # older than what is kept


def test_bytes_are_bounded_but_the_newest_window_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode_estimate(window(0)))
    monkeypatch.setattr(estimate_history, "BYTES", 2 * size + 10)
    board = EstimateHistory([FRUIT])
    for step in range(4):
        assert taken(board, window(step))
    assert board.starts(FRUIT) == [T0 + 20, T0 + 30]
    monkeypatch.setattr(estimate_history, "BYTES", 1)
    assert taken(board, window(4))
    assert board.starts(FRUIT) == [T0 + 40]


def test_another_collection_or_another_meaning_is_skipped() -> None:
    """Estimates of the name under former parameters would be other values, at another price."""
    other = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))
    board = EstimateHistory([FRUIT])
    assert not taken(board, estimate_of(PLACE))
    assert not taken(board, estimate_of(other))
    assert (board.newest, board.starts(FRUIT)) == ({}, [])


def test_our_parameters_under_another_name_are_skipped() -> None:
    """The page knows the collections by name: it could not show this one."""
    board = EstimateHistory([FRUIT, PLACE])
    for name in ("other", PLACE.name):
        assert not taken(board, changed(estimate_of(), collection=name))
    assert not board.newest


def test_history_points_have_the_highest_estimates() -> None:
    number = VALUES + 5
    shares = [i / 100 for i in range(number)]
    high = [share + 0.1 for share in shares]
    columns = {"frequency": shares, "count": shares, "std_error": shares, "low": shares, "high": high}
    columns["significant"] = [True] * number
    point = point_of(window(0, values=[f"v{i}" for i in range(number)], **columns))
    assert point["values"] == [f"v{i}" for i in range(number - 1, number - 1 - VALUES, -1)]
    assert point["frequency"] == point["low"] == [i / 100 for i in range(number - 1, 4, -1)]
    assert {key: point[key] for key in ("collection", "window_start", "window_end", "final", "reports")} == {
        "collection": "fruit",
        "window_start": T0,
        "window_end": T0 + 10,
        "final": False,
        "reports": 40,
    }
