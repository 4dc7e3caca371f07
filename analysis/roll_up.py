"""The roll-up of joined windows, and its table, with the figures that `deniable rollup --json` prints."""

from typing import Any

import msgspec

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import RollUpRecord, roll_up, too_few_reports
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.analysis.errors import AnalysisError, arrow
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.estimate_table import OTHER
from deniable.estimators.collection import Collection
from deniable.estimators.rollup.overlap import RollUp

COLUMNS = ("frequency", "low", "high", "std_error", "significant", "count")
#: Ends of intervals that hold the shares of all values at once; `other` is none of the values.
FOR_ALL = ("low_all", "high_all")


def fitted(collection: Collection, joined: Joined, period: Period | None = None) -> RollUp | None:
    """Estimate over all joined windows; None with fewer reports than minimum_reports.

    Parameters
    ----------
    collection, joined : the windows, and the definition to estimate under.
    period : of the windows, for the message where several are read.

    Raises
    ------
    AnalysisError if no estimate fits the counts.
    """
    try:
        return roll_up(collection, joined)
    except (ValueError, ArithmeticError) as error:
        where = f" of {period}" if period else ""
        raise AnalysisError(f"no estimate fits the counts{where}: {error}") from error


def estimated(collection: Collection, joined: Joined, period: Period | None = None) -> RollUp:
    """Return what `fitted` does; AnalysisError also with fewer reports than minimum_reports."""
    result = fitted(collection, joined, period)
    if result is None:
        raise AnalysisError(too_few_reports(collection, joined, f" in {period}" if period else ""))
    return result


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
