"""The windows under one definition, in an answer that joins estimates across changes."""

import msgspec


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
