"""The record of a history across changes of parameters, as a table, and its parts in sentences."""

from typing import Any

import msgspec

from aggregator.history.periods import iso
from aggregator.records.estimate import NumberMean
from analysis.errors import arrow
from analysis.tables.arrow_table import ArrowTable

JOINED_VERSION = 1


class HistoryPart(msgspec.Struct, frozen=True):
    """The windows under one definition; times in unix seconds, `from` and `to` in JSON.

    Parameters
    ----------
    fingerprint : of the definition, in hex.
    start, end : from the start of its first window to the end of its last.
    change : what differs from the present definition, one line; empty for that one itself.
    not_joined : why its estimate is not joined; empty if it is.
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


class JoinedHistoryRecord(msgspec.Struct, frozen=True):
    """A roll-up over changes for programs: one JSON object; columns of equal length.

    `share` is a mean of unbiased estimates, weighted by inverse variance, and may be negative. `std_error`,
    `low` and `high` are for reports of different clients each; `shared_…` hold whatever the windows have in
    common, and `significant` uses them. Errors are null where none can be stated. `parts_of_value` is the
    number of parts that list the value. `p_value` tests that they have the same share; where `differs`, they
    do not, and `share` is a mean of different shares. `passed_over` are windows under definitions that were
    not given, by fingerprint. `mean`, of a number, is one over all parts, too.
    """

    version: int
    collection: str
    fingerprint: str
    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    reports: int
    parts: list[HistoryPart]
    passed_over: dict[str, int]
    values: list[str]
    share: list[float]
    std_error: list[float | None]
    low: list[float]
    high: list[float]
    significant: list[bool]
    shared_std_error: list[float | None]
    shared_low: list[float]
    shared_high: list[float]
    parts_of_value: list[int]
    p_value: list[float]
    differs: list[bool]
    mean: NumberMean | None

    def table(self) -> ArrowTable:
        """Return a row for each value; `about` is the record without its columns."""
        pa = arrow("a table of a joined history")
        fields = msgspec.to_builtins(self)
        lists = [name for name in self.__struct_fields__ if isinstance(getattr(self, name), list)]
        columns = {
            "value" if name == "values" else name: pa.array(fields[name], _kind(pa, name))
            for name in lists
            if name != "parts"
        }
        about = {name: each for name, each in fields.items() if name not in columns and name != "values"}
        return ArrowTable(pa.table(columns), about)


def _kind(pa: Any, name: str) -> Any:
    kinds = {
        "values": pa.string(),
        "significant": pa.bool_(),
        "differs": pa.bool_(),
        "parts_of_value": pa.int64(),
    }
    return kinds.get(name, pa.float64())


def lines_of_parts(record: JoinedHistoryRecord) -> list[str]:
    """Say for people which windows were joined, where parameters changed, and what is not comparable."""
    lines = [
        f"{record.collection}: {len(record.parts)} definitions, {iso(record.start)} to {iso(record.end)}"
    ]
    for part in record.parts:
        lines.append(
            f"{iso(part.start)} to {iso(part.end)}: {part.windows:,} windows, {part.reports:,} reports, "
            f"{part.mechanism}, epsilon {part.epsilon:.6g} (fingerprint {part.fingerprint})"
        )
        if part.change:
            lines.append(f"  changed since: {part.change}")
        if part.not_joined:
            lines.append(f"  not comparable, not joined: {part.not_joined}")
    lines += [
        f"{windows} windows with other parameters (fingerprint {fingerprint}) skipped: give the collection "
        "file that they were counted under as --former, too"
        for fingerprint, windows in record.passed_over.items()
    ]
    return lines
