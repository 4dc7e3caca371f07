"""The newest revision of each window, of tables that were read from files."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from deniable.analysis.errors import arrow

TableWindow = tuple[str, int]  # fingerprint, and start in microseconds
TableRevision = tuple[int, bool]


def revisions_of(table: Any) -> dict[TableWindow, TableRevision]:
    """Return the revision of each window of a table of estimates or of windows, and whether it is final."""
    if not len(table):
        return {}
    names = ["fingerprint", "window_start", *_version_columns(table)]
    few = table.select(names).group_by(names).aggregate([])
    rows = zip(*(_plain(few[name]) for name in names), strict=True)
    found: dict[TableWindow, TableRevision] = {}
    for fingerprint, start, *version in rows:
        window, revision = (fingerprint, start), (version[0], version[1] if len(version) > 1 else True)
        found[window] = max(revision, found.get(window, revision))
    return found


def newest_of(tables: Sequence[Any]) -> list[Any]:
    """Return the tables without windows that another has in a newer revision, or an earlier one has too."""
    found = [revisions_of(each) for each in tables]
    best: dict[TableWindow, tuple[TableRevision, int]] = {}
    for number, windows in enumerate(found):
        for window, revision in windows.items():
            known = best.get(window)
            if known is None or revision > known[0]:
                best[window] = revision, number
    lost = [
        {window: None for window in windows if best[window][1] != number}
        for number, windows in enumerate(found)
    ]
    return [without(table, dropped) for table, dropped in zip(tables, lost, strict=True)]


def without(table: Any, windows: Mapping[TableWindow, object]) -> Any:
    """Return the table without the rows of some windows."""
    if not windows:
        return table
    keys = zip(_plain(table["fingerprint"]), _plain(table["window_start"]), strict=True)
    return table.filter(arrow("a table").array(np.array([key not in windows for key in keys], bool)))


def _version_columns(table: Any) -> list[str]:
    return ["revision", "final"] if "revision" in table.column_names else ["packs"]


def _plain(column: Any) -> list[Any]:
    """Values of a column; times in microseconds."""
    pa = arrow("a table")
    return list((column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist())
