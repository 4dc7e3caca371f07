"""What growing a tree has found as a table, with the figures of `deniable decode --grow --json`."""

from typing import Any

import msgspec

from deniable.aggregator.history.growth import GrowthRecord
from deniable.analysis.errors import arrow
from deniable.analysis.tables.arrow_table import ArrowTable

NUMBERS = ("frequency", "low", "high", "std_error")
FLAGS = ("significant", "whole")


def growth_table(record: GrowthRecord) -> ArrowTable:
    """Return a row for each text that was found, the most frequent first.

    Columns are `value`, in UTF-8, where a character that the last level cuts is written as its bytes;
    `frequency`, `low`, `high` and `std_error`, fractions of all reports; `significant`, whether the interval
    excludes 0; `whole`, false for the beginning of one or several texts; and `count`, in reports.

    Parameters
    ----------
    record : with texts that were found, or none of them.

    Returns
    -------
    ArrowTable whose `about` is the record without its columns.

    Raises
    ------
    ValueError if the record is of too few reports.
    """
    if record.found is None:
        raise ValueError("a tree must have enough reports, got fewer than minimum_reports")
    pa, found = arrow("a table of found texts"), record.found
    columns: dict[str, Any] = {"value": pa.array(found.texts, pa.string())}
    columns |= {name: pa.array(getattr(found, name), pa.float64()) for name in NUMBERS}
    columns |= {name: pa.array(getattr(found, name), pa.bool_()) for name in FLAGS}
    columns["count"] = pa.array([each * record.reports for each in found.frequency], pa.float64())
    about = msgspec.to_builtins(record)
    about["found"] = {name: each for name, each in about["found"].items() if name not in ("texts", *columns)}
    return ArrowTable(pa.table(columns), about)
