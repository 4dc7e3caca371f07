"""The period that a caller asks for, in the forms that Python programs have times in."""

import re
import reprlib
from datetime import UTC, date, datetime, time
from numbers import Real

from aggregator.history.periods import LATEST, Period, parse_time
from analysis.arguments import check_type
from analysis.errors import AnalysisError

DAY_SECONDS = 86_400
UNITS = {"m": 60, "h": 3600, "d": DAY_SECONDS, "w": 7 * DAY_SECONDS}
ALL_TIME = Period(0, LATEST)

TimeGiven = str | int | float | date | datetime
TIME_ALLOWED = "a time: ISO 8601, a datetime, a date, or unix seconds"
LAST_ALLOWED = "a text of a whole number from 1 to 999999 with m, h, d or w, such as '90m', '24h', '7d', '4w'"


def seconds_of(name: str, moment: TimeGiven) -> int:
    """Return unix seconds.

    Parameters
    ----------
    name : of the parameter, for the error message.
    moment : ISO 8601 (without a zone: local time), unix seconds, a datetime (naive: local time), or a date,
        which is its midnight in local time.

    Raises
    ------
    AnalysisError if it is of another type, out of 1970 to 9999, or holds a fraction of a second.
    """
    check_type(name, moment, (str, date, Real), TIME_ALLOWED)
    if isinstance(moment, str):
        try:
            return parse_time(name, moment, takes_local=True)
        except ValueError as error:
            raise AnalysisError(str(error)) from error
    if isinstance(moment, datetime):
        seconds = moment.timestamp()
    elif isinstance(moment, date):
        seconds = datetime.combine(moment, time()).timestamp()
    else:
        seconds = moment
    if not 0 <= seconds <= LATEST or seconds != int(seconds):
        raise AnalysisError(f"{name} must be whole seconds from 1970 to 9999, got {moment!r}")
    return int(seconds)


def period_between(
    start: TimeGiven | None, end: TimeGiven | None, last: str | None, now: float, default_seconds: int | None
) -> Period:
    """Return the period between two times, or of the last seconds.

    Parameters
    ----------
    start, end : see `seconds_of`; end None: now, or without `default_seconds` all time.
    last : the length of a period that ends at `end`, such as "90m", "24h", "30d", "4w"; None if not given.
    now : unix seconds.
    default_seconds : length of the period without `start` and `last`; None: from 1970 on.

    Raises
    ------
    AnalysisError if a time is invalid, both start and last are given, or start is not before end.
    """
    if start is not None and last is not None:
        raise AnalysisError("give either start or last")
    is_open = end is None and last is None and default_seconds is None
    until = LATEST if is_open else int(now) if end is None else seconds_of("end", end)
    if start is not None:
        since = seconds_of("start", start)
    elif last is not None:
        since = until - duration_seconds(last)
    else:
        since = 0 if default_seconds is None else until - default_seconds
    period = Period(max(0, since), until)
    if period.start >= period.end:
        raise AnalysisError(f"start must be before end: give an earlier start, got {period}")
    return period


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration such as 90m, 24h, 7d, 4w; AnalysisError if it is none."""
    check_type("last", text, str, LAST_ALLOWED)
    match = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", text)
    if match is None:
        raise AnalysisError(f"last must be {LAST_ALLOWED}, got {reprlib.repr(text)}")
    return int(match[1]) * UNITS[match[2]]


def named_period(text: str) -> Period:
    """Return a period written as START/END, or as a day (2026-01-31) or month (2026-01), in local time.

    Raises
    ------
    AnalysisError if it is none of these.
    """
    start, slash, end = text.partition("/")
    if slash:
        return period_between(start, end, None, 0, None)
    if re.fullmatch(r"\d{4}-\d{2}", text):
        year, month = map(int, text.split("-"))
        if 1 <= month <= 12:
            following = date(year + month // 12, month % 12 + 1, 1)
            return period_between(date(year, month, 1), following, None, 0, None)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        midnight = seconds_of("a day", text)
        following = datetime.fromtimestamp(midnight + DAY_SECONDS * 3 // 2).date()
        return period_between(midnight, following, None, 0, None)
    raise AnalysisError(
        f"a period must be START/END, such as 2026-01-01/2026-01-08 or with times in ISO 8601, a day such as "
        f"2026-01-31, or a month such as 2026-01, got {text!r}"
    )


def moment_of(unix_seconds: int) -> datetime:
    """Return a datetime in UTC."""
    return datetime.fromtimestamp(unix_seconds, UTC)
