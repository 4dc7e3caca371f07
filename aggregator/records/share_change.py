"""A share that changed, as metrics, page and commands show it."""

import msgspec

#: Rate of false alarms of one collection, at most, while no share changes.
CHANGE_ALARMS_A_YEAR = 0.1


class ShareChange(msgspec.Struct, frozen=True):
    """A share that changed: which, since when, and by how much.

    Parameters
    ----------
    value : label of the value.
    since : start of the first window after the change, as estimated, unix seconds.
    found : end of the window whose estimate raised the alarm, unix seconds.
    before, after : mean shares before and since, unbiased, fractions of all reports.
    change : after - before.
    low, high : interval of the change.
    """

    value: str
    since: int
    found: int
    before: float
    after: float
    change: float
    low: float
    high: float
