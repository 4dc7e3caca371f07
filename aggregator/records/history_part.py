"""The windows under one definition, in an answer that joins estimates across changes.

Rule: shares agree where a report can be of the same values. If a list changes and clients without a listed
value do not report, so do those who can answer, and with them what a share is a share of.
"""

from collections.abc import Sequence

import msgspec

from deniable.estimators.detectors.fit import FIT


class HistoryPart(msgspec.Struct, frozen=True):
    """The windows under one definition; times in unix seconds, `from` and `to` in JSON.

    Parameters
    ----------
    fingerprint : of the definition, in hex.
    start, end : from the start of its first window to the end of its last.
    windows, reports : of these that are joined, or would be if they were comparable.
    mechanism, epsilon : of the reports.
    change : what differs from the present definition, one line; empty for that one itself.
    not_joined : why its estimates are not joined; empty if they are.
    fit_p_value : of the test of fit of its counts; None unless they are joined.
    """

    fingerprint: str
    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    windows: int
    reports: int
    mechanism: str
    epsilon: float
    change: str
    not_joined: str
    fit_p_value: float | None = None

    @property
    def diagnostics(self) -> dict[str, float]:
        """The test of fit, as an estimate has it; empty if nothing was tested."""
        return {} if self.fit_p_value is None else {FIT: self.fit_p_value}


def reason_of_lists(*, differ: bool, took_any: bool, takes_any: bool) -> str:
    """Return why shares of two lists may not be joined; empty if they may.

    Parameters
    ----------
    differ : whether the lists do.
    took_any, takes_any : whether a client with any value could report before the change, and can since.
    """
    if not differ:
        return "" if took_any == takes_any else "one takes values that are not listed, the other refuses them"
    if took_any and takes_any:
        return ""
    return "the lists differ, and without `other` a share is one of listed values alone"


def named(values: Sequence[str], most: int) -> str:
    """Return values as a list, the first ones if there are more than `most`."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(values[:most]) + more
