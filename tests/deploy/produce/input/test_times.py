"""The time of an event, as a field gives it; `protocol.times` has the forms."""

import pytest

from deniable.deploy.produce.input.times import time_of
from deniable.protocol.times import GivenTime
from deniable.protocol.wire import MAX_WINDOW_START


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        (1_767_225_633, GivenTime(1_767_225_633.0)),
        (1_767_225_633.25, GivenTime(1_767_225_633.25)),
        ("1767225633.25", GivenTime(1_767_225_633.25)),
        (1_767_225_633_250, GivenTime(1_767_225_633.25, is_milliseconds=True)),
        (20_260_101, GivenTime(1_767_225_600.0, has_zone=False)),
        (20_260_101.0, GivenTime(1_767_225_600.0, has_zone=False)),
        ("2026-01-01 00:00:33", GivenTime(1_767_225_633.0, has_zone=False)),
    ],
)
def test_numbers_and_texts_are_times(given: object, moment: GivenTime) -> None:
    assert time_of(given) == moment


@pytest.mark.parametrize(
    "given",
    [
        *(
            None,
            True,
            "",
            float("nan"),
            float("inf"),
            -1,
            10**400,
            1e300,
            MAX_WINDOW_START + 1,
            [1],
            "0001-01-01",
        ),
        *(0, 0.0, "0", "0.0", "1970-01-01", "1970-01-01T00:00:00Z"),  # as tables write a time that is missing
    ],
)
def test_anything_else_is_no_time(given: object) -> None:
    assert time_of(given) is None
