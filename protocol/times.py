"""Times as people and programs write them: one rule for files, commands and requests. Pure.

Rule 1: a number alone is told by how many digits it has: 9 to 11 (or 0) are unix seconds, 13 unix
milliseconds, 8 a date in ISO 8601 without dashes. It is none of them otherwise: nobody could tell which.
Rule 2: notation decides nothing. 1767225633, 1767225633.0 and 1.767225633e9 are one time.
Rule 3: second 60 is the first second of the next minute, as unix time has it.
"""

import re
from datetime import datetime, tzinfo
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

MOST_CHARACTERS = 64
SECONDS_DIGITS = (9, 10, 11)  # 1973 to 5138
MILLISECONDS_DIGITS = 13  # 2001 to 2286; twelve may be a date with hour and minute, fourteen one with seconds
DATE_DIGITS = 8
FORMS = (
    "ISO 8601 such as 2026-01-31T00:00:00Z, unix seconds of 9 to 11 digits, or unix milliseconds of 13 digits"
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")
_LEAP_SECOND = re.compile(r"(?<=[0-9]:[0-9]{2}:)60(?=[^0-9]|$)|(?<=T[0-9]{4})60(?=[^0-9]|$)")


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
    whole, leaps = _LEAP_SECOND.subn("59", text, count=1)
    given = datetime.fromisoformat(whole)
    moment = given if given.tzinfo or zone is None else given.replace(tzinfo=zone)
    try:
        return GivenTime(moment.timestamp() + leaps, has_zone=given.tzinfo is not None)
    except OverflowError as error:
        raise ValueError("out of range") from error
