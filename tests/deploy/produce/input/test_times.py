"""The time of an event, as a field gives it."""

import pytest

from deniable.deploy.produce.input.times import unix_seconds
from deniable.protocol.wire import MAX_WINDOW_START


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (1_767_225_633, 1_767_225_633.0),
        (1_767_225_633.25, 1_767_225_633.25),
        ("1767225633.25", 1_767_225_633.25),
        ("2026-01-01T00:00:33Z", 1_767_225_633.0),
        ("2026-01-01 00:00:33", 1_767_225_633.0),
        (" 2026-01-01T02:00:33+02:00 ", 1_767_225_633.0),
        ("2026-01-01", 1_767_225_600.0),
        (0, 0.0),
        (MAX_WINDOW_START, float(MAX_WINDOW_START)),
    ],
)
def test_unix_seconds_and_iso_8601_are_times(given: object, seconds: float) -> None:
    assert unix_seconds(given) == seconds


@pytest.mark.parametrize(
    "given",
    [
        None,
        True,
        "",
        "yesterday",
        "nan",
        "inf",
        -1,
        "1e400",
        10**400,
        MAX_WINDOW_START + 1,
        [1],
        "0001-01-01",
    ],
)
def test_anything_else_is_no_time(given: object) -> None:
    assert unix_seconds(given) is None
