"""The history keeps the newest estimate of recent windows of known collections, within bounds."""

from dataclasses import replace

import pytest

from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate, encode_estimate
from deniable.aggregator.views import estimate_history
from deniable.aggregator.views.estimate_history import VALUES, EstimateHistory, point_of
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, PLACE, T0, changed, estimate_of


def taken(latest: EstimateHistory, record: EstimateRecord) -> bool:
    return latest.take(encode_estimate(record)) is not None


def kept(latest: EstimateHistory, window_start: int | None = None) -> EstimateRecord | None:
    data = latest.record(FRUIT, window_start)
    return None if data is None else decode_estimate(data)


def window(step: int, **fields: object) -> EstimateRecord:
    return changed(estimate_of(), window_start=T0 + 10 * step, **fields)


def test_each_window_keeps_its_newest_estimate() -> None:
    latest = EstimateHistory([FRUIT])
    assert kept(latest) is None
    assert taken(latest, window(1, revision=5))
    assert taken(latest, window(0, revision=9, final=True))
    assert not taken(latest, window(0, revision=8))
    assert not taken(latest, window(0, revision=9, final=False))
    assert kept(latest) == kept(latest, T0 + 10) == latest.newest["fruit"] == window(1, revision=5)
    assert kept(latest, T0) == window(0, revision=9, final=True)
    assert kept(latest, T0 + 20) is None
    assert latest.starts(FRUIT) == [T0, T0 + 10]


def test_oldest_windows_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_history, "WINDOWS", 3)
    latest = EstimateHistory([FRUIT])
    for step in (2, 0, 3, 1):
        assert taken(latest, window(step))
    assert latest.starts(FRUIT) == [T0 + 10, T0 + 20, T0 + 30]
    assert not taken(latest, window(0))  # older than the history


def test_bytes_are_bounded_but_the_newest_window_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encode_estimate(window(0)))
    monkeypatch.setattr(estimate_history, "BYTES", 2 * size + 10)
    latest = EstimateHistory([FRUIT])
    for step in range(4):
        assert taken(latest, window(step))
    assert latest.starts(FRUIT) == [T0 + 20, T0 + 30]
    monkeypatch.setattr(estimate_history, "BYTES", 1)
    assert taken(latest, window(4))
    assert latest.starts(FRUIT) == [T0 + 40]


OTHER = replace(FRUIT, mechanism=KRR.from_epsilon(4, 1.0))


def of_other(step: int, **fields: object) -> EstimateRecord:
    return changed(estimate_of(OTHER), window_start=T0 + 10 * step, window_end=T0 + 10 * step + 10, **fields)


def test_unknown_collection_is_skipped() -> None:
    latest = EstimateHistory([FRUIT])
    assert not taken(latest, estimate_of(PLACE))
    assert (latest.newest, latest.points(FRUIT)) == ({}, [])


def test_estimate_under_other_parameters_is_a_point_but_never_the_newest() -> None:
    """It has another privacy cost, and maybe other values. Its append time proves nothing about ours."""
    latest = EstimateHistory([FRUIT])
    assert taken(latest, of_other(3, revision=4))
    assert not taken(latest, of_other(3, revision=3))
    assert (latest.newest, latest.starts(FRUIT), kept(latest)) == ({}, [], None)
    assert taken(latest, window(4, window_end=T0 + 50))
    assert (latest.starts(FRUIT), latest.points(FRUIT)) == ([T0 + 40], [T0 + 30, T0 + 40])
    assert latest.point(FRUIT, of_other(3))["other_parameters"] == {
        "fingerprint": f"{OTHER.fingerprint:016x}",
        "difference": "epsilon 1 to 2",
        "not_comparable": "",
    }
    assert latest.point(FRUIT, window(4))["other_parameters"] is None


def test_points_of_all_parameters_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate_history, "WINDOWS", 3)
    latest = EstimateHistory([FRUIT])
    for step in range(4):
        assert taken(latest, of_other(step))
    for step in (4, 5):
        assert taken(latest, window(step))
    assert latest.points(FRUIT) == [T0 + 30, T0 + 40, T0 + 50]


def test_window_under_both_parameters_is_joined() -> None:
    """As where workers change one after the other: reports of both are of one window."""
    latest = EstimateHistory([FRUIT])
    ours = window(0, unbiased=[0.4, 0.1, 0.1], std_error=[0.1, 0.1, None], reports=50)
    other = of_other(0, unbiased=[0.2, -0.2, 0.9], std_error=[0.2, 0.1, 0.1], reports=30)
    for records in ((ours, other), (other, ours)):
        latest = EstimateHistory([FRUIT])
        for each in records:
            assert taken(latest, each)
        point = latest.point(FRUIT, records[-1])
        shares = dict(zip(ours.values, (0.8 * 0.4 + 0.2 * 0.2, 0.0, 0.9), strict=True))
        found = dict(zip(point["values"], point["frequency"], strict=True))  # type: ignore[call-overload]
        assert found == pytest.approx(shares)
        assert (point["reports"], point["other_parameters"]) == (80, None)


def test_our_parameters_under_another_name_are_skipped() -> None:
    """The page knows collections by name, so it could not show this one."""
    latest = EstimateHistory([FRUIT, PLACE])
    for name in ("other", PLACE.name):
        assert not taken(latest, changed(estimate_of(), collection=name))
    assert not latest.newest


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
