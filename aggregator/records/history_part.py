"""The windows under one definition, in an answer that joins estimates across changes."""

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
