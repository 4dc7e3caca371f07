"""A roll-up as a table, with the figures of `deniable rollup --json` and `deniable decode --json`."""

from typing import Any

import msgspec

from deniable.aggregator.history.rollup import RollUpRecord
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.analysis.errors import arrow
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.estimate_table import OTHER

COLUMNS = ("frequency", "low", "high", "std_error", "significant", "count")
#: Ends of intervals that hold the shares of all values at once; `other` is none of the values.
FOR_ALL = ("low_all", "high_all")


def rollup_table(record: RollUpRecord, *, other: bool) -> ArrowTable:
    """Return a row for each value.

    `frequency`, `low`, `high`, `std_error`, `significant`, `count`, `low_all` and `high_all` take every
    report for another client's; the same columns with `shared_` before them also hold if the same clients
    report in every window. Those with `sequence_` hold at every look. A number has none of these: its
    `about["sequence"]` is of its mean; `upper` is where each of its rows ends. `unbiased` is the
    unconstrained estimate under either assumption, null for a number.

    Parameters
    ----------
    record : with both estimates.
    other : True for a last row, `(other)`, of the reports in none of the values.

    Returns
    -------
    ArrowTable whose `about` is the record without its columns.

    Raises
    ------
    ValueError if the record has no estimate.
    """
    if record.independent is None or record.shared is None:
        raise ValueError("a roll-up must have estimates, got none: it has fewer reports than minimum_reports")
    pa = arrow("a table of a roll-up")
    independent, shared = record.independent, record.shared
    rest = other and (independent.other is not None)
    columns: dict[str, Any] = {"value": pa.array([*independent.values, *([OTHER] if rest else [])], "string")}
    for prefix, estimate in (("", independent), ("shared_", shared)):
        for name in COLUMNS:
            kind = pa.bool_() if name == "significant" else pa.float64()
            values = [*getattr(estimate, name), *([_of_rest(estimate, name)] if rest else [])]
            columns[f"{prefix}{name}"] = pa.array(values, kind)
        for name in FOR_ALL:
            columns[f"{prefix}{name}"] = pa.array([*getattr(estimate, name), *[None] * rest], pa.float64())
    places = len(independent.values)
    unbiased: list[float | None] = [*independent.unbiased] or [None] * places
    columns["unbiased"] = pa.array(unbiased + [None] * rest, pa.float64())
    unreliable: list[bool | None] = [*independent.unreliable] or [None] * places
    columns["unreliable"] = pa.array(unreliable + [None] * rest, pa.bool_())
    columns["is_other"] = pa.array([False] * places + [True] * rest, pa.bool_())
    if record.edges is not None:
        columns["upper"] = pa.array(record.edges[1:], pa.float64())
    about = msgspec.to_builtins(record)
    if record.sequence is not None and independent.mean is None:
        for name in ("low", "high", *FOR_ALL):
            ends = [*getattr(record.sequence, name), *[None] * rest]
            columns[f"sequence_{name}"] = pa.array(ends, pa.float64())
        about["sequence"] = {name: about["sequence"][name] for name in ("windows", "repeated_noise")}
    for estimate in (about["independent"], about["shared"]):
        for name in ("values", *COLUMNS, *FOR_ALL, "unbiased", "misfit_error", "unreliable"):
            del estimate[name]
    return ArrowTable(pa.table(columns), about)


def _of_rest(estimate: EstimateRecord, name: str) -> float | None:
    rest = estimate.other
    if rest is None or name == "significant":
        return None
    share: float | None = rest.frequency * estimate.reports if name == "count" else getattr(rest, name)
    return share
