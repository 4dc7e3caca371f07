"""Times as people and programs write them: one rule for files, commands and requests. Pure.

Rule 1: a number alone is told by how many digits it has: 9 to 11 (or 0) are unix seconds, 13 unix
milliseconds, 8 a date in ISO 8601 without dashes. It is none of them otherwise: nobody could tell which.
Rule 2: notation decides nothing. 1767225633, 1767225633.0 and 1.767225633e9 are one time.
Rule 3: second 60 is the first second of the next minute, as unix time has it, and 24:00 the next midnight.
Rule 4: of ISO 8601, dates by month and day, week and day, week, or day of the year, such as 2026-031; dashes
and colons may be left out, but for that of a day of the year, else a number of 7 digits. T and Z may be t, z.
Rule 5: 0, in any notation, may begin a period that a command is asked for. It is never the time of an event
in a file: tables write it for a time that is missing.
"""

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from decimal import Decimal
from math import inf
from typing import NamedTuple
from zoneinfo import ZoneInfo

MOST_CHARACTERS = 64
SECONDS_DIGITS = (9, 10, 11)  # 1973 to 5138
MILLISECONDS_DIGITS = 13  # 2001 to 2286; twelve may be a date with hour and minute, fourteen one with seconds
DATE_DIGITS = 8
SIMULATED = 1e7  # below it, a program's number is seconds
FORMS = (
    "ISO 8601 such as 2026-01-31T00:00:00Z, unix seconds of 9 to 11 digits, or unix milliseconds of 13 digits"
)
NUMBERS = "unix seconds of 9 to 11 digits, unix milliseconds of 13 digits, or a date such as 20260131"
CLOCKS = "such as time.time() or the timestamp() of an aware datetime"
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_LEAP_SECOND = re.compile(r"(?<=[T ][0-9]{2}:[0-9]{2}:)60(?=[^0-9]|$)|(?<=T[0-9]{4})60(?=[^0-9]|$)")
# Python takes +05:60 for +06:00.
_WRONG_ZONE = re.compile(r"[T ][^+-]*[+-][0-9]{2}:?([0-5][0-9]:?)?[6-9][0-9]")
_MIDNIGHT = re.compile(r"(?<=[T ])24(?=:?00(:?00([.,]0+)?)?([^0-9:.,]|$))")
_DAY_OF_YEAR = re.compile(r"([0-9]{4})-([0-9]{3})(?=[T ]|$)")


class GivenTime(NamedTuple):
    """A time, and how it was written.

    Parameters
    ----------
    seconds : unix seconds, at least 0.
    is_milliseconds : whether it was a number of milliseconds.
    has_zone : False if ISO 8601 named no zone.
    """

    seconds: float
    is_milliseconds: bool = False
    has_zone: bool = True


def read_time(text: str, zone: tzinfo | None) -> GivenTime:
    """Read a time.

    Parameters
    ----------
    text : the time in one of FORMS; spaces around it are ignored.
    zone : of ISO 8601 that names none; None for this machine's.

    Raises
    ------
    ValueError if it is none, or before 1970.
    """
    plain = text.strip()
    if len(plain) > MOST_CHARACTERS:
        raise ValueError("too long for a time")
    moment = _of_number(Decimal(plain), zone) if _NUMBER.fullmatch(plain) else _of_iso(plain, zone)
    if moment.seconds < 0:
        raise ValueError("before 1970")
    return moment


def seconds_of_number(number: float) -> float:
    """Return the unix seconds that a program means by a number, of a date those of its midnight in UTC.

    Infinite if it is no time.

    Numbers of up to 7 digits, the first months of 1970, are seconds: no person writes them, but tests and
    simulations do.
    """
    if 0 <= number < SIMULATED or 1e8 <= number < 1e11:
        return float(number)
    try:
        return read_time(str(number), UTC).seconds
    except ValueError:
        return inf


def read_zone(name: str) -> ZoneInfo:
    """Return a time zone by its IANA name, such as Europe/Berlin; ValueError if it is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:  # unknown; a folder; a path
        raise ValueError("no time zone of this machine") from error


def _of_number(number: Decimal, zone: tzinfo | None) -> GivenTime:
    digits = number.adjusted() + 1
    if not number or digits in SECONDS_DIGITS:
        return GivenTime(float(number))
    if digits == MILLISECONDS_DIGITS:
        return GivenTime(float(number / 1000), is_milliseconds=True)
    if digits == DATE_DIGITS and number == int(number):
        return _of_iso(f"{int(number)}", zone)
    raise ValueError("a number of other digits")


def _of_iso(text: str, zone: tzinfo | None) -> GivenTime:
    plain = _DAY_OF_YEAR.sub(_month_and_day, text.replace("t", "T").replace("z", "Z"), count=1)
    if _WRONG_ZONE.search(plain):
        raise ValueError("a zone of 60 minutes or seconds")
    whole, leaps = _LEAP_SECOND.subn("59", plain, count=1)
    whole, days = _MIDNIGHT.subn("00", whole, count=1)
    given = datetime.fromisoformat(whole)
    try:
        given += timedelta(days)
        moment = given if given.tzinfo or zone is None else given.replace(tzinfo=zone)
        return GivenTime(moment.timestamp() + leaps, has_zone=given.tzinfo is not None)
    except OverflowError as error:
        raise ValueError("out of range") from error


def _month_and_day(match: re.Match[str]) -> str:
    year, day = int(match[1]), int(match[2])
    found = date(year, 1, 1) + timedelta(day - 1)
    if found.year != year:
        raise ValueError("no such day of the year")
    return found.isoformat()
