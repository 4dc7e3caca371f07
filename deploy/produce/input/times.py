"""Read the time of an event from a field of a line."""

import math
from datetime import UTC

from deniable.protocol.times import FORMS, GivenTime, read_time
from deniable.protocol.wire import MAX_WINDOW_START

WRONG_TIME = f"its time is none of {FORMS}, or is 0, which stands for a missing one"


def time_of(given: object) -> GivenTime | None:
    """Return the time that a field holds; None if it holds none in (0, MAX_WINDOW_START].

    Parameters
    ----------
    given : a number or a text (see `protocol.times`); without a time zone it is UTC.
    """
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    if isinstance(given, float) and not math.isfinite(given):
        return None
    try:
        moment = read_time(str(given), UTC)
    except ValueError:
        return None
    return moment if 0 < moment.seconds <= MAX_WINDOW_START else None
