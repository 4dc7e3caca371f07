"""The record of a history across changes of parameters, as a table, and its parts in sentences."""

import msgspec

from deniable.aggregator.history.periods import iso
from deniable.aggregator.history.rollup import WindowCoverage
from deniable.aggregator.records.estimate import NumberMean
from deniable.aggregator.records.history_part import HistoryPart
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.record_table import record_table
from deniable.estimators.mechanisms.directed_rounding import rounded_up_short
from deniable.protocol.words import number_of

JOINED_VERSION = 1


class JoinedHistoryRecord(msgspec.Struct, frozen=True):
    """A roll-up over changes for programs: one JSON object; columns of equal length.

    `share` is a mean of unbiased estimates, weighted by inverse variance, and may be negative. `std_error`,
    `low` and `high` are for reports of different clients each; `shared_…` hold whatever the windows have in
    common, and `significant` uses them. Errors are null where none can be stated. `parts_of_value` is the
    number of parts that list the value. `p_value` tests that they have the same share; where `differs`, they
    do not, and `share` is a mean of different shares. `passed_over` are windows under definitions that were
    not given, by fingerprint. `coverage` says which windows were counted under the definitions given, joined
    or not comparable, and which are missing or incomplete. `mean`, of a number, is one over all parts, too.

    Errors, intervals, `p_value` and `differs` are of the randomizers' noise alone, so a difference is one
    between those who reported: if other people report in each part, shares differ by chance although nobody
    changed. With two parts of 1,000 reports of k-RR, 16 values and epsilon 4, `differs` then marks a value
    in 54 % of runs, and 82 % of the intervals hold the share among all people; docs/history.md has more.
    """

    version: int
    collection: str
    fingerprint: str
    start: int = msgspec.field(name="from")
    end: int = msgspec.field(name="to")
    reports: int
    parts: list[HistoryPart]
    coverage: WindowCoverage
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
        return record_table(self, "a table of a joined history")


def lines_of_parts(record: JoinedHistoryRecord) -> list[str]:
    """Say for people which windows were joined, where parameters changed, and what is not comparable."""
    lines = [
        f"{record.collection}: {number_of(len(record.parts), 'definition')}, {iso(record.start)} to "
        f"{iso(record.end)}"
    ]
    for part in record.parts:
        lines.append(
            f"{iso(part.start)} to {iso(part.end)}: {number_of(part.windows, 'window', ',')}, "
            f"{number_of(part.reports, 'report', ',')}, "
            f"{part.mechanism}, epsilon {rounded_up_short(part.epsilon)} (fingerprint {part.fingerprint})"
        )
        if part.change:
            lines.append(f"  changed since: {part.change}")
        if part.not_joined:
            lines.append(f"  not comparable, not joined: {part.not_joined}")
    lines += [
        f"{number_of(windows, 'window')} with other parameters (fingerprint {fingerprint}) skipped: give the "
        "collection file that they were counted under as --former, too"
        for fingerprint, windows in record.passed_over.items()
    ]
    return lines
