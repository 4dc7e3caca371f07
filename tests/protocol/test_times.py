"""Times as people write them: value decides, not notation."""

from datetime import UTC, timedelta, timezone
from math import inf
from zoneinfo import ZoneInfo

import pytest

from deniable.protocol.times import MOST_CHARACTERS, GivenTime, read_time, seconds_of_number

NEW_YEAR = 1_767_225_600  # 2026-01-01T00:00:00Z


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1767225633", NEW_YEAR + 33),
        ("1767225633.0", NEW_YEAR + 33),
        ("1.767225633e9", NEW_YEAR + 33),
        ("1767225633.25", NEW_YEAR + 33.25),
        ("0", 0),
        ("100000000", 100_000_000),
        ("99999999999", 99_999_999_999),
        ("2026-01-01T00:00:33Z", NEW_YEAR + 33),
        (" 2026-01-01 02:00:33+02:00 ", NEW_YEAR + 33),
        ("20260101T020033+0200", NEW_YEAR + 33),
        ("2025-12-31T23:59:60Z", NEW_YEAR),
        ("20251231T235960.5Z", NEW_YEAR + 0.5),
        ("2025-12-31T18:59:60-05", NEW_YEAR),
        ("2026-01-01T05:30:33+05:30:00.75", NEW_YEAR + 32.25),
        ("2026-01-01T05:45:33+0545", NEW_YEAR + 33),
        ("2025-12-31T24:00:00Z", NEW_YEAR),
        ("20251231T2400Z", NEW_YEAR),
        ("2025-12-31 24:00:00.0+00:00", NEW_YEAR),
        ("2026-01-01t00:00:33z", NEW_YEAR + 33),
        ("2025-365T24:00:00Z", NEW_YEAR),
    ],
)
def test_seconds_and_iso_8601_with_a_zone(text: str, seconds: float) -> None:
    assert read_time(text, None) == read_time(text, UTC) == GivenTime(seconds)


@pytest.mark.parametrize("text", ["1767225633250", "1767225633250.0", "1.76722563325e12"])
def test_thirteen_digits_are_milliseconds(text: str) -> None:
    assert read_time(text, None) == GivenTime(NEW_YEAR + 33.25, is_milliseconds=True)


@pytest.mark.parametrize(
    "text", ["2026-01-01", "20260101", "20260101.0", "2026-W01-4", "2026-001", "2026-001T00:00"]
)
def test_a_date_is_a_date_in_each_of_its_forms(text: str) -> None:
    """Its midnight in the zone that the caller names."""
    assert read_time(text, UTC) == GivenTime(NEW_YEAR, has_zone=False)
    assert read_time(text, timezone(timedelta(hours=2))) == GivenTime(NEW_YEAR - 7200, has_zone=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "nan",
        "inf",
        "-1",
        "1_767_225_633",
        "1,767,225,633",
        "12345678",  # no date
        "20260101.5",
        "202601010930",  # milliseconds, or a date with hour and minute
        "20260101093000",
        "17672",
        "1767225633250000",
        "1e400",
        "1e9999999",
        "0001-01-01",
        "1969-12-31T23:59:59Z",
        "2026-01-01T00:00:61Z",
        "2026-01-01T60:00:00Z",
        "2026-01-01T00:00:33+05:30:60",  # no leap second of a zone
        "2026-01-01 00:00:33-05:60",
        "20260101T000033+053075",
        "2026-01-01T24:00:01Z",
        "2026-01-01T24:30:00Z",
        "9999-12-31T24:00:00Z",
        "2025-366",
        "2026-000",
        "2026001",
        "9" * (MOST_CHARACTERS + 1),
    ],
)
def test_what_could_be_several_times_or_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its callers say what is allowed
        read_time(text, UTC)


def test_midnight_at_the_end_of_a_day_is_that_of_its_zone() -> None:
    """The day of a clock change has 23 hours."""
    berlin = ZoneInfo("Europe/Berlin")
    assert read_time("2026-03-29T24:00", berlin) == read_time("2026-03-30", berlin)


@pytest.mark.parametrize(
    ("number", "seconds"),
    [
        (NEW_YEAR + 0.5, NEW_YEAR + 0.5),
        (1_767_225_633_250, NEW_YEAR + 33.25),
        (20_260_101, NEW_YEAR),
        (20_260_101.0, NEW_YEAR),
        (60, 60),  # of a simulation
        (12_345_678, inf),
        (20_260_101.5, inf),
        (202_601_010_930, inf),
        (10**400, inf),
        (-1, inf),
        (float("nan"), inf),
    ],
)
def test_a_number_of_a_program_is_read_as_that_of_a_file(number: float, seconds: float) -> None:
    assert seconds_of_number(number) == seconds
