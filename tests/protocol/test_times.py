"""Times as people write them: value decides, not notation."""

from datetime import UTC, timedelta, timezone

import pytest

from deniable.protocol.times import MOST_CHARACTERS, GivenTime, read_time

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
    ],
)
def test_seconds_and_iso_8601_with_a_zone(text: str, seconds: float) -> None:
    assert read_time(text, None) == read_time(text, UTC) == GivenTime(seconds)


@pytest.mark.parametrize("text", ["1767225633250", "1767225633250.0", "1.76722563325e12"])
def test_thirteen_digits_are_milliseconds(text: str) -> None:
    assert read_time(text, None) == GivenTime(NEW_YEAR + 33.25, is_milliseconds=True)


@pytest.mark.parametrize("text", ["2026-01-01", "20260101", "20260101.0", "2026-W01-4", "2026-01-01T00:00"])
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
        "9" * (MOST_CHARACTERS + 1),
    ],
)
def test_what_could_be_several_times_or_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its callers say what is allowed
        read_time(text, UTC)
