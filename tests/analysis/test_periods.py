"""Periods in the forms that Python programs have them in."""

import time
from datetime import UTC, date, datetime
from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from deniable.aggregator.history import window_reader
from deniable.aggregator.history.periods import LATEST, Period
from deniable.analysis.errors import AnalysisError
from deniable.analysis.periods import TimeGiven, check_room, named_period, period_between, seconds_of
from tests.support.aggregator.builders import FRUIT
from tests.support.messages import PinMessages

DAY = 86_400
NOON = 1_769_860_800  # 2026-01-31T12:00Z


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local time is that of the test."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


@pytest.mark.parametrize(
    "moment",
    [
        NOON,
        float(NOON),
        str(NOON),
        "2026-01-31T12:00Z",
        "2026-01-31T13:00+01:00",
        "2026-01-31 12:00",
        datetime(2026, 1, 31, 12, tzinfo=UTC),
        datetime(2026, 1, 31, 12),
        np.datetime64("2026-01-31T12:00"),
        np.datetime64("2026-01-31T12:00", "ns"),
    ],
)
def test_moment_is_read(moment: TimeGiven) -> None:
    assert seconds_of("start", moment) == NOON
    assert seconds_of("start", date(2026, 1, 31)) == NOON - DAY // 2


def test_time_of_numpy_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrow and pandas give the times of our tables to numpy like this."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    assert seconds_of("start", np.datetime64(NOON * 1_000_000, "us")) == NOON


def test_period_without_bounds_is_all_time() -> None:
    assert period_between(None, None, None, NOON, None) == Period(0, LATEST)
    assert period_between(None, None, None, NOON, DAY) == Period(NOON - DAY, NOON)
    assert period_between(None, NOON - 1, "2h", NOON, None) == Period(NOON - 7201, NOON - 1)
    assert period_between(None, None, "4w", NOON + 0.9, None) == Period(NOON - 28 * DAY, NOON)
    assert period_between(NOON - 5, None, None, NOON, None) == Period(NOON - 5, LATEST)


def test_a_number_is_read_as_in_commands() -> None:
    day = NOON - DAY // 2
    assert seconds_of("start", 20260131) == seconds_of("start", 20260131.0) == day
    assert seconds_of("start", 1000 * NOON) == NOON
    berlin = ZoneInfo("Europe/Berlin")
    assert seconds_of("start", 20260131, berlin) == seconds_of("start", "20260131", berlin) == day - 3600
    with pytest.raises(AnalysisError, match="start"):
        seconds_of("start", 12345678)


def test_number_of_numpy_is_a_time() -> None:
    assert period_between(np.int64(NOON - 5), NOON, None, NOON, None) == Period(NOON - 5, NOON)  # type: ignore[arg-type]


def test_named_period_is_a_day_a_month_or_two_times() -> None:
    day = NOON - DAY // 2
    assert named_period("2026-01-31") == Period(day, day + DAY)
    assert named_period("2026-01") == Period(day - 30 * DAY, day + DAY)
    assert named_period("2025-12") == Period(day - 61 * DAY, day - 30 * DAY)
    assert named_period("2026-01-31T12:00Z/2026-02-01") == Period(NOON, day + DAY)


@pytest.mark.parametrize("text", ["20260131", "2026-031", "2026-W05-6", "2026W056", "2026-01-31"])
def test_a_day_is_named_as_times_name_it(text: str) -> None:
    assert named_period(text) == Period(NOON - DAY // 2, NOON + DAY // 2)


def test_named_period_is_an_iso_week_in_a_named_zone() -> None:
    """2026-W48 begins on Monday, 23 November; in Berlin an hour before midnight in UTC."""
    monday = int(datetime(2026, 11, 23, tzinfo=UTC).timestamp())
    assert named_period("2026-W48") == Period(monday, monday + 7 * DAY)
    berlin = ZoneInfo("Europe/Berlin")
    assert named_period("2026W48", berlin) == named_period("2026-W48", berlin)
    assert named_period("2026-W48", berlin) == Period(monday - 3600, monday + 7 * DAY - 3600)
    of_dates = period_between(date(2026, 11, 23), datetime(2026, 11, 30), None, NOON, None, berlin)
    assert named_period("2026-11-23/2026-W49", berlin) == of_dates == named_period("2026-W48", berlin)
    week = named_period("2026-W13", berlin)  # it ends with the change to summer time
    assert week.end - week.start == 7 * DAY - 3600


def test_day_of_a_clock_change_has_its_own_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    spring, autumn = named_period("2026-03-29"), named_period("2026-10-25")
    assert (spring.end - spring.start, autumn.end - autumn.start) == (23 * 3600, 25 * 3600)


def test_time_of_pandas_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pandas itself takes it for UTC."""
    pandas = pytest.importorskip("pandas", reason="the extra analysis is not installed")
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    assert seconds_of("start", pandas.Timestamp("2026-01-31 07:00")) == NOON
    assert seconds_of("start", pandas.Timestamp("2026-01-31 12:00", tz="UTC")) == NOON
    for hour in (0, 1):
        twice = pandas.Timestamp(datetime(2026, 11, 1, 1, 30, fold=hour))
        assert seconds_of("start", twice) == seconds_of("start", datetime(2026, 11, 1, 1, 30, fold=hour))
    with pytest.raises(AnalysisError, match="start"):
        seconds_of("start", pandas.Timestamp("2026-01-31 07:00:00.000000001"))


def test_missing_time_of_pandas_is_refused() -> None:
    """It is a datetime whose methods raise."""
    pandas = pytest.importorskip("pandas", reason="the extra analysis is not installed")
    with pytest.raises(AnalysisError, match="start"):
        seconds_of("start", pandas.NaT)


def test_messages(pin_messages: PinMessages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_reader, "MOST_COUNTERS", 40)
    check_room(FRUIT, Period(0, 100))
    moments: dict[str, TimeGiven] = {
        "before 1970": -1,
        "half a second": 0.5,
        "after 9999": LATEST + 1,
        "a word": "noon",
        "no number": float("nan"),
        "a number that no integer of 64 bits holds": 1e300,
        "a datetime with a microsecond": datetime(2026, 1, 1, 0, 0, 0, 1, UTC),
        "the last datetime": datetime.max,
        "no time of NumPy": np.datetime64("NaT"),
        "a time of NumPy with a nanosecond": np.datetime64("2026-01-31T12:00:00.000000001", "ns"),
        "a time of NumPy in years": np.datetime64(20_000, "Y"),
        "a time of NumPy after 9999": np.datetime64(2**62, "s"),
    }
    others = {"a list": [1], "True": True, "bytes": b"2026", "a complex number": 1j}
    names = ["", "2026", "2026-13", "9999-12", "yesterday", "2026-02-30"]
    pin_messages(
        {what: partial(seconds_of, "start", moment) for what, moment in moments.items()}
        | {what: partial(period_between, each, None, None, NOON, None) for what, each in others.items()}  # type: ignore[arg-type]
        | {
            "an empty period": lambda: period_between(NOON, NOON, None, NOON, None),
            "start and last": lambda: period_between(NOON, None, "1d", NOON, None),
            "last is a word": lambda: period_between(None, None, "soon", NOON, None),
            "last is in years": lambda: period_between(None, None, "1y", NOON, None),
            "too many windows for memory": lambda: check_room(FRUIT, Period(0, 110)),
        }
        | {f"the name {each!r}": partial(named_period, each) for each in names}
    )
