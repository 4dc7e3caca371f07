"""Periods from text: accepted forms, refused forms and their messages."""

import time
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.aggregator.history.periods import (
    LATEST,
    Period,
    gaps,
    iso,
    merged,
    parse_time,
    period_of,
)
from tests.support.messages import PinMessages

JANUARY = 1_769_817_600  # 2026-01-31T00:00:00Z


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T00:00:00Z",
        "2026-01-31T00Z",
        "2026-01-31 01:00+01:00",
        "20260130T1930-0430",
        "20260131T00Z",
        "1769817600",
    ],
)
def test_time_is_iso_with_a_zone_or_unix_seconds(text: str) -> None:
    assert parse_time("from", text) == JANUARY


@pytest.mark.parametrize("seconds", [0, 100_000_000, 99_999_999_999])
def test_unix_seconds_beyond_any_date_are_accepted(seconds: int) -> None:
    assert parse_time("from", str(seconds)) == seconds


def test_period_roundtrips() -> None:
    period = period_of("2026-01-31T00Z", str(JANUARY + 3600))
    assert str(period) == "2026-01-31T00:00:00Z to 2026-01-31T01:00:00Z"
    assert iso(LATEST) == "9999-12-31T23:59:59Z"


@pytest.mark.parametrize(
    ("period", "whole", "windows"),
    [
        ((60, 180), (60, 180), 2),
        ((61, 180), (120, 180), 1),
        ((60, 179), (60, 120), 1),
        ((61, 119), (120, 120), 0),
        ((0, 59), (0, 0), 0),
    ],
)
def test_period_contains_whole_windows_only(
    period: tuple[int, int], whole: tuple[int, int], windows: int
) -> None:
    assert Period(*period).whole_windows(60) == whole
    assert Period(*period).windows(60) == windows


@given(st.sets(st.integers(0, 19)), st.integers(1, 7))
def test_windows_and_gaps_partition_the_period(numbers: set[int], seconds: int) -> None:
    starts = [number * seconds for number in sorted(numbers)]
    covered, missing = merged(starts, seconds), gaps(Period(0, 20 * seconds), starts, seconds)
    spans = sorted([*covered, *missing])
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
    assert spans[-1].end == 20 * seconds
    for of in (covered, missing):
        assert all(before.end < after.start for before, after in pairwise(of))
    assert sum(end - start for start, end in covered) == seconds * len(numbers)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
def test_time_without_zone_may_be_local(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        there = ZoneInfo(zone)
        for text, moment in (
            ("2026-01-31", datetime(2026, 1, 31, tzinfo=there)),
            ("2026-07-31 09:30", datetime(2026, 7, 31, 9, 30, tzinfo=there)),
            ("2026-07-31T09:30:00Z", datetime(2026, 7, 31, 9, 30, tzinfo=UTC)),
        ):
            assert parse_time("from", text, takes_local=True) == moment.timestamp()
    finally:
        monkeypatch.undo()
        time.tzset()


def test_long_text_is_shortened() -> None:
    with pytest.raises(ValueError, match="to") as caught:
        parse_time("to", "9" * 5000)
    assert len(str(caught.value)) < 300


def test_messages(pin_messages: PinMessages) -> None:
    texts = [
        "",
        "yesterday",
        "2026-01-31",
        "2026-01-31T00:00:00",
        "2026-01-31T00:00:00.5Z",
        "2026-01-31T00:00:00 01:00",
        "-1",
        "1769817600.5",
        "2026",
        "20260131",
        "202601310000",
        "９",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ]
    pin_messages(
        {f"the time {each!r}": partial(parse_time, "to", each) for each in texts}
        | {
            "a period that begins with a word": partial(period_of, "soon", "2026-01-31T00Z"),
            "an empty period": partial(period_of, str(JANUARY), str(JANUARY)),
            "a period that ends before its start": partial(period_of, str(JANUARY), str(JANUARY - 1)),
        }
    )
