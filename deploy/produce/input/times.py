"""Read the time of an event from a field of a line."""

import math
from datetime import UTC, datetime

from deniable.protocol.wire import MAX_WINDOW_START

WRONG_TIME = "its time is neither unix seconds nor ISO 8601"


def unix_seconds(given: object) -> float | None:
    """Return the time that a field holds, unix seconds; None if it holds none in [0, MAX_WINDOW_START].

    Parameters
    ----------
    given : unix seconds as a number or text, or text in ISO 8601; without a time zone it is UTC.
    """
    seconds = _seconds(given)
    return None if seconds is None or not 0 <= seconds <= MAX_WINDOW_START else seconds


def _seconds(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (ValueError, OverflowError):
        return _of_iso(str(given))
    return number if math.isfinite(number) else None


def _of_iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
