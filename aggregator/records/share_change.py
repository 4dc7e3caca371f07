"""A share that changed, or a mean, as metrics, page and commands show it."""

import msgspec

#: In place of a value: the mean of a number.
MEAN = "mean"


class ShareChange(msgspec.Struct, frozen=True):
    """A share that changed: which, since when, and by how much. Of a number, its mean, in its units.

    Parameters
    ----------
    value : label of the value; of a number `MEAN`.
    since : start of the first window after the change, as estimated, unix seconds.
    found : end of the window whose estimate raised the alarm, unix seconds.
    before, after : mean shares before and after the window `since`, in which the change may have begun;
        unbiased, fractions of all reports.
    change : after - before.
    low, high : interval of the change.
    partial : whether `after` is of the window `since` alone, which may hold a part of the change: the next
        final window states it anew, unless the share came back.
    """

    value: str
    since: int
    found: int
    before: float
    after: float
    change: float
    low: float
    high: float
    partial: bool = False
