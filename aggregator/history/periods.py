"""Times, periods and counts, as people and programs write them."""

import reprlib
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import NamedTuple

from deniable.protocol.times import GivenTime, read_time

LATEST = 253_402_300_799  # the last second of the year 9999
NO_TIME = GivenTime(-1.0)


class Period(NamedTuple):
    """From `start` until before `end`, unix seconds."""

    start: int
    end: int

    def __str__(self) -> str:
        """Both ends in ISO 8601."""
        return f"{iso(self.start)} to {iso(self.end)}"

    def whole_windows(self, window_seconds: int) -> "Period":
        """From the start of the first window entirely within to the end of the last; may be empty."""
        first = -(-self.start // window_seconds) * window_seconds
        return Period(first, max(first, self.end // window_seconds * window_seconds))

    def windows(self, window_seconds: int) -> int:
        """Number of windows entirely within."""
        whole = self.whole_windows(window_seconds)
        return (whole.end - whole.start) // window_seconds


def period_of(start: str, end: str) -> Period:
    """The period between two times; ValueError if one is invalid, or they are out of order."""
    period = Period(parse_time("from", start), parse_time("to", end))
    if period.start >= period.end:
        raise ValueError(f"from must be before to ({end}), got {start}")
    return period


def parse_time(name: str, text: str, zone: tzinfo | None = None, *, takes_local: bool = False) -> int:
    """Parse a time to unix seconds.

    Parameters
    ----------
    name : of the parameter, for the error message.
    text : the time (see `protocol.times`).
    zone : of ISO 8601 that names none; None for this machine's.
    takes_local : whether ISO 8601 may lack its zone.

    Raises
    ------
    ValueError.
    """
    try:
        moment = read_time(text, zone)
    except ValueError:
        moment = NO_TIME
    is_told = moment.has_zone or takes_local
    if not (0 <= moment.seconds <= LATEST and moment.seconds.is_integer() and is_told):
        examples = (
            "ISO 8601, such as 2026-01-31T00:00:00Z, or in local time 2026-01-31, 2026-W05 or "
            "'2026-01-31 09:00'"
            if takes_local
            else "ISO 8601 with its zone, such as 2026-01-31T00:00:00Z"
        )
        raise ValueError(
            f"{name} must be whole seconds from 1970 to 9999: {examples}, or unix seconds, 0 or 9 to 11 "
            f"digits such as 1769817600, or unix milliseconds, 13 digits, got {reprlib.repr(text)}"
        )
    return int(moment.seconds)


def iso(unix_seconds: int) -> str:
    """ISO 8601 in UTC."""
    return f"{datetime.fromtimestamp(min(unix_seconds, LATEST), UTC):%Y-%m-%dT%H:%M:%SZ}"


def gaps(within: Period, starts: Sequence[int], window_seconds: int) -> list[Period]:
    """Periods that no window covers.

    Parameters
    ----------
    within : whole windows.
    starts : of windows within, ascending and distinct.
    window_seconds : length of each.
    """
    ends = [within.start, *(start + window_seconds for start in starts)]
    between = zip(ends, [*starts, within.end], strict=True)
    return [Period(end, start) for end, start in between if end < start]


def merged(starts: Sequence[int], window_seconds: int) -> list[Period]:
    """Windows as periods, adjacent ones joined; `starts` ascending and distinct."""
    spans: list[Period] = []
    for start in starts:
        first = spans.pop().start if spans and spans[-1].end == start else start
        spans.append(Period(first, start + window_seconds))
    return spans
