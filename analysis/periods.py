"""The period that a caller asks for, in the forms that Python programs have times in."""

import re
import reprlib
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from numbers import Real

import numpy as np

from deniable.aggregator.history.periods import LATEST, Period, parse_time
from deniable.aggregator.history.window_reader import most_windows
from deniable.analysis.arguments import check_type
from deniable.analysis.errors import WrongArgumentError
from deniable.estimators.collection import Collection
from deniable.protocol.times import read_time

DAY_SECONDS = 86_400
UNITS = {"m": 60, "h": 3600, "d": DAY_SECONDS, "w": 7 * DAY_SECONDS}
ALL_TIME = Period(0, LATEST)
_DAY = re.compile(r"\d{8}|\d{4}-\d{2}-\d{2}|\d{4}-\d{3}|\d{4}-?W\d{2}-?\d", re.ASCII)

TimeGiven = str | int | float | date | datetime | np.datetime64
TIME_ALLOWED = "a time: ISO 8601, a datetime, a date, or unix seconds"
LAST_ALLOWED = "a text of a whole number from 1 to 999999 with m, h, d or w, such as '90m', '24h', '7d', '4w'"


def seconds_of(name: str, moment: TimeGiven, zone: tzinfo | None = None) -> int:
    """Return unix seconds.

    Parameters
    ----------
    name : of the parameter, for the error message.
    moment : a text or number (see `protocol.times`; without a zone: local time), a datetime or
        pandas.Timestamp (naive: local time), a datetime64 (UTC), or a date, which is its midnight in local
        time.
    zone : of local time; None for this machine's.

    Raises
    ------
    WrongArgumentError if it is of another type, out of 1970 to 9999, or holds a fraction of a second.
    """
    if isinstance(moment, np.datetime64):
        moment = _from_numpy(name, moment)
    check_type(name, moment, (str, date, Real), TIME_ALLOWED)
    if not isinstance(moment, date):
        try:
            return parse_time(name, str(moment), zone, takes_local=True)
        except ValueError as error:
            raise WrongArgumentError(str(error)) from error
    try:
        if isinstance(moment, datetime):
            seconds = _plain(moment, zone).timestamp()
        else:
            seconds = datetime.combine(moment, time(), zone).timestamp()
    except (ValueError, OverflowError) as error:  # pandas.NaT is a datetime; years 1 and 9999 in some zones
        raise WrongArgumentError(f"{name} must be whole seconds from 1970 to 9999, got {moment!r}") from error
    has_nanoseconds = getattr(moment, "nanosecond", 0) != 0  # of a pandas.Timestamp
    if not 0 <= seconds <= LATEST or seconds != int(seconds) or has_nanoseconds:
        raise WrongArgumentError(f"{name} must be whole seconds from 1970 to 9999, got {moment!r}")
    return int(seconds)


def _plain(moment: datetime, zone: tzinfo | None) -> datetime:
    """Return a naive moment as a datetime of the standard library: pandas takes its own for UTC."""
    if moment.tzinfo is not None:
        return moment
    return datetime.combine(moment.date(), moment.time(), zone).replace(fold=moment.fold)


def _from_numpy(name: str, moment: np.datetime64) -> datetime:
    """Return the same time in UTC, in which numpy has times of tables; errors as of `seconds_of`."""
    whole = moment.astype("datetime64[us]")
    found = whole.item()  # an int out of the years 1 to 9999, None for NaT
    if not isinstance(found, datetime) or not bool(whole.astype(moment.dtype) == moment):
        raise WrongArgumentError(f"{name} must be whole seconds from 1970 to 9999, got {moment!r}")
    return found.replace(tzinfo=UTC)


def period_between(
    start: TimeGiven | None,
    end: TimeGiven | None,
    last: str | None,
    now: float,
    default_seconds: int | None,
    zone: tzinfo | None = None,
) -> Period:
    """Return the period between two times, or of the last seconds.

    Parameters
    ----------
    start, end : see `seconds_of`; end None: now, or without `default_seconds` all time.
    last : the length of a period that ends at `end`, such as "90m", "24h", "30d", "4w"; None if not given.
    now : unix seconds.
    default_seconds : length of the period without `start` and `last`; None: from 1970 on.
    zone : of local time; None for this machine's.

    Raises
    ------
    WrongArgumentError if a time is invalid, both start and last are given, or start is not before end.
    """
    if start is not None and last is not None:
        raise WrongArgumentError("give either start or last")
    is_open = end is None and last is None and default_seconds is None
    until = LATEST if is_open else int(now) if end is None else seconds_of("end", end, zone)
    if start is not None:
        since = seconds_of("start", start, zone)
    elif last is not None:
        since = until - duration_seconds(last)
    else:
        since = 0 if default_seconds is None else until - default_seconds
    period = Period(max(0, since), until)
    if period.start >= period.end:
        raise WrongArgumentError(f"start must be before end: give an earlier start, got {period}")
    return period


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration such as 90m, 24h, 7d, 4w; WrongArgumentError if it is none."""
    check_type("last", text, str, LAST_ALLOWED)
    seconds = seconds_in(text)
    if seconds is None:
        raise WrongArgumentError(f"last must be {LAST_ALLOWED}, got {reprlib.repr(text)}")
    return seconds


def seconds_in(duration: str) -> int | None:
    """Return the seconds of a duration such as 90m, 24h, 7d, 4w; None if it is none."""
    match = re.fullmatch(r"([1-9][0-9]{0,5})([mhdw])", duration)
    return None if match is None else int(match[1]) * UNITS[match[2]]


def default_seconds(collection: Collection) -> int:
    """Return the length of a period for which none is given: a day, or as long as surely holds a window."""
    return max(DAY_SECONDS, 2 * collection.window_seconds)


def check_window(collection: Collection, period: Period) -> None:
    """Raise WrongArgumentError if no whole window of a collection is in a period."""
    if not period.windows(collection.window_seconds):
        raise WrongArgumentError(
            f"the period must hold at least 1 whole window of {collection.window_seconds} s, got {period}"
        )


def check_room(
    collection: Collection, period: Period, *, reads: str = "the period", remedy: str = ""
) -> None:
    """Raise WrongArgumentError if a period may have more windows than are kept in memory.

    Parameters
    ----------
    collection, period : whose windows are read.
    reads : names the period, for the message.
    remedy : what else helps than a shorter period, with a comma before it.
    """
    windows, most = period.windows(collection.window_seconds), most_windows(collection)
    if windows > most:
        raise WrongArgumentError(
            f"{reads} must hold at most {most} windows of {collection.name}, got {windows}: give a shorter "
            f"period{remedy}"
        )


def named_period(text: str, zone: tzinfo | None = None) -> Period:
    """Return a period written as START/END, or as a day, an ISO week or a month.

    Parameters
    ----------
    text : such as 2026-01-31, 2026-W05 or 2026-01 in local time; days and weeks also in the other forms of
        `protocol.times`.
    zone : of local time; None for this machine's.

    Raises
    ------
    WrongArgumentError if it is none of these.
    """
    start, slash, end = text.partition("/")
    days = (start, end) if slash else _first_and_next(text)
    if days is None:
        raise WrongArgumentError(
            "a period must be START/END, such as 2026-01-01/2026-01-08 or with times in ISO 8601, a day such "
            f"as 2026-01-31, an ISO week such as 2026-W05, or a month such as 2026-01, got {text!r}"
        )
    return period_between(days[0], days[1], None, 0, None, zone)


def _first_and_next(text: str) -> tuple[date, date] | None:
    """Return the first day of a day, week or month, and the first one after it; None if it is none."""
    is_month, is_week = (re.fullmatch(form, text, re.ASCII) for form in (r"\d{4}-\d{2}", r"\d{4}-?W\d{2}"))
    if not (is_month or is_week or _DAY.fullmatch(text)):
        return None
    try:
        given = read_time(f"{text}-01" if is_month else text, UTC)
        first = datetime.fromtimestamp(given.seconds, UTC).date()
        after = (first + timedelta(31)).replace(day=1) if is_month else first + timedelta(7 if is_week else 1)
    except (ValueError, OverflowError):  # no such day; before 1970; beyond the year 9999
        return None
    return first, after


def moment_of(unix_seconds: int) -> datetime:
    """Return a datetime in UTC."""
    return datetime.fromtimestamp(unix_seconds, UTC)
