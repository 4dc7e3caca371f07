"""Columns of a table of final windows: a row for each cohort of each window, with its counts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.errors import AnalysisError, arrow
from deniable.estimators.collection import Collection


def window_schema() -> Any:
    """Return the pyarrow.Schema of windows.

    `counts` are reports per reported bucket, or with each bit set, of randomized reports: what `rollup` and
    `decode` estimate from. `reports` is of the cohort; `packs` and `rejected` are of the window.
    """
    pa = arrow("a table of windows")
    moment, repeated = pa.timestamp("us", "UTC"), pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            ("collection", repeated),
            ("window_start", moment),
            ("window_end", moment),
            ("cohort", pa.int32()),
            ("reports", pa.int64()),
            ("counts", pa.list_(pa.int64())),
            ("packs", pa.int64()),
            ("rejected", pa.int64()),
            ("fingerprint", repeated),
        ]
    )


def window_table(collection: Collection, windows: Mapping[int, WindowCounts]) -> Any:
    """Return a pyarrow.Table of windows, by start, unix seconds."""
    pa = arrow("a table of windows")
    cohorts, width = collection.cohorts, collection.width
    rows = len(windows) * cohorts
    starts = np.repeat(np.array([*windows], np.int64), cohorts) * 1_000_000
    counts = [each.counts.reshape(-1) for each in windows.values()]
    flat = np.concatenate(counts) if counts else np.empty(0, np.int64)
    sizes = [each.cohort_sizes for each in windows.values()]
    length = collection.window_seconds * 1_000_000

    def text(name: str) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([name]))

    def repeated(figures: list[int]) -> Any:
        return pa.array(np.repeat(np.array(figures, np.int64), cohorts), pa.int64())

    schema = window_schema()
    offsets = np.arange(rows + 1, dtype=np.int64) * width
    lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(flat)).cast(pa.list_(pa.int64()))
    columns = [
        text(collection.name),
        pa.array(starts).cast(schema.field("window_start").type),
        pa.array(starts + length).cast(schema.field("window_end").type),
        pa.array(np.tile(np.arange(cohorts, dtype=np.int32), len(windows))),
        pa.array(np.concatenate(sizes) if sizes else np.empty(0, np.int64)),
        lists,
        repeated([each.packs for each in windows.values()]),
        repeated([each.rejected for each in windows.values()]),
        text(f"{collection.fingerprint:016x}"),
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def windows_of(collection: Collection, table: Any) -> dict[int, WindowCounts]:
    """Inverse of `window_table`, for rows of this collection in any order.

    Raises
    ------
    AnalysisError if a window lacks a cohort, has one twice, or counts of another width.
    """
    if not len(table):
        return {}
    table = table.sort_by([("window_start", "ascending"), ("cohort", "ascending")]).combine_chunks()
    starts = table["window_start"].cast("int64").to_numpy() // 1_000_000
    cohorts, width = collection.cohorts, collection.width
    first = starts[::cohorts]
    lists = table["counts"].combine_chunks()
    is_whole = (
        len(starts) == len(first) * cohorts
        and bool((np.repeat(first, cohorts)[: len(starts)] == starts).all())
        and bool((table["cohort"].to_numpy() == np.tile(np.arange(cohorts), len(first))).all())
        and bool((np.diff(first) > 0).all())
        and bool((lists.value_lengths().to_numpy() == width).all())
    )
    if not is_whole:
        raise AnalysisError(
            f"windows of {collection.name} must have {cohorts} cohorts of {width} counts, each once: the "
            "table lacks rows, repeats them, or is of other parameters"
        )
    counts = lists.flatten().to_numpy().reshape(-1, cohorts, width)
    sizes = table["reports"].to_numpy().reshape(-1, cohorts)
    packs, rejected = (table[name].to_numpy()[::cohorts].tolist() for name in ("packs", "rejected"))
    return {
        start: WindowCounts(counts[i], sizes[i], packs[i], rejected[i])
        for i, start in enumerate(first.tolist())
    }
