"""Reads tables from files: folders that `deniable export` wrote, single files of it, and JSON lines."""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from aggregator.history.periods import Period
from analysis.arguments import check_type
from analysis.errors import AnalysisError, arrow
from analysis.sources.newest import NewestEstimates
from analysis.sources.topic import EstimateFilter
from analysis.tables.export_state import state_folder
from analysis.tables.file_formats import FORMATS, read_table
from analysis.tables.revisions import newest_of, revisions_of

LINES = (".jsonl", ".ndjson", ".json")
PARTITION = "collection="
NAMES_SHOWN = 20

FILES_ALLOWED = "the path of a file or folder, or a list of such paths"

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def files_of(given: Files, collection: str) -> list[Path]:
    """Return the files that may hold rows of a collection, sorted.

    Parameters
    ----------
    given : files and folders. Of a folder, all .parquet, .csv and .jsonl files below it count, whatever
        their depth, except those in a folder `collection=NAME` of another collection.
    collection : its name.

    Raises
    ------
    AnalysisError if one is of another type or does not exist, or there is no file in it.
    """
    check_type("files", given, (str, os.PathLike, Iterable), FILES_ALLOWED)
    places = [Path(given)] if isinstance(given, str | os.PathLike) else _paths(given)
    found: list[Path] = []
    for place in places:
        if not place.exists():
            raise AnalysisError(f"files must be files or folders that exist, got {place}")
        inside = sorted(_inside(place)) if place.is_dir() else [place]
        if not inside and not (place.is_dir() and state_folder(place).is_dir()):  # else nothing is final yet
            raise AnalysisError(f"{place} must hold .parquet, .csv or .jsonl files, and holds none")
        found += inside
    ours = [each for each in found if collection_of(each) in (None, collection)]
    if found and not ours:
        warn_of_names(collection, {name for each in found if (name := collection_of(each)) is not None})
    return ours


def warn_of_names(collection: str, names: set[str]) -> None:
    """Warn that files hold other collections only, with their names: a typo looks like an empty table."""
    shown = ", ".join(sorted(names)[:NAMES_SHOWN])
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    warnings.warn(f"{collection}: the files hold nothing of it; there are: {shown}{more}", stacklevel=4)


def collection_of(path: Path) -> str | None:
    """Return the collection that the names of a file's folders say; None if they say none."""
    for part in path.parts[:-1]:
        if part.startswith(PARTITION):
            return unquote(part.removeprefix(PARTITION))
    return None


def read_files(
    files: Sequence[Path], schema: Any, collection: str, fingerprint: str | None, period: Period
) -> tuple[Any, dict[str, set[int]]]:
    """Return the newest revision of each window of a collection that is wholly in a period.

    Parameters
    ----------
    files : .parquet and .csv.
    schema : `estimate_schema` or `window_schema`.
    fingerprint : in hex; None for any.

    Returns
    -------
    pyarrow.Table, by fingerprint and window; and starts of windows under other parameters, by fingerprint.

    Raises
    ------
    AnalysisError.
    """
    pa = arrow("reading files")
    others: dict[str, set[int]] = {}
    tables, names = [], set[str]()
    for path in files:
        named = collection_of(path)
        table = read_table(path, schema, {} if named is None else {"collection": named})
        names.update(table["collection"].unique().to_pylist())
        table = _within(table, collection, period)
        if fingerprint is not None and len(table):
            compute = _compute()
            is_ours = compute.equal(table["fingerprint"].cast(pa.string()), fingerprint)
            for other, start in revisions_of(table.filter(compute.invert(is_ours))):
                others.setdefault(other, set()).add(start // 1_000_000)
            table = table.filter(is_ours)
        if len(table):
            tables.append(table)
    if names and collection not in names:
        warn_of_names(collection, names)
    if not tables:
        return schema.empty_table(), others
    return _ordered(pa.concat_tables(newest_of(tables)).unify_dictionaries()), others


def read_lines(files: Sequence[Path], wanted: EstimateFilter) -> NewestEstimates:
    """Read JSON lines of estimates, as `deniable watch` writes them in a pipe."""
    newest = NewestEstimates()
    for path in files:
        with path.open("rb") as lines:
            for line in lines:
                record = line.strip()
                value = wanted.wanted(f"{wanted.name}/".encode(), record) if record else None
                if value is not None and newest.add(value):
                    newest.convert(newest.taken())
    if wanted.named and wanted.name not in wanted.named:
        warn_of_names(wanted.name, wanted.named)
    return newest


def _paths(given: Iterable[str | os.PathLike[str]]) -> list[Path]:
    paths = list(given)
    for each in paths:
        check_type("files", each, (str, os.PathLike), FILES_ALLOWED)
    return [Path(each) for each in paths]


def _inside(folder: Path) -> Iterator[Path]:
    endings = {f".{each}" for each in FORMATS} | set(LINES)
    for path in folder.rglob("*"):
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        if path.suffix in endings and not hidden and path.is_file():
            yield path


def _within(table: Any, collection: str, period: Period) -> Any:
    """Rows of a collection whose windows are wholly in a period."""
    pa, compute = arrow("reading files"), _compute()
    start, end = (table[name].cast(pa.int64()) for name in ("window_start", "window_end"))
    is_ours = compute.equal(table["collection"].cast(pa.string()), collection)
    is_inside = compute.and_(
        compute.greater_equal(start, period.start * 1_000_000),
        compute.less_equal(end, period.end * 1_000_000),
    )
    chosen = compute.and_(is_ours, is_inside)
    return table if compute.all(chosen).as_py() else table.filter(chosen)


def _ordered(table: Any) -> Any:
    """Rows by fingerprint and window; within a window as they were."""
    starts = table["window_start"].cast("int64").to_numpy()
    fingerprints = table["fingerprint"].combine_chunks()
    ranks = np.argsort(np.argsort(fingerprints.dictionary.to_pylist()))
    keys = ranks[fingerprints.indices.to_numpy()]
    if bool((np.diff(keys) >= 0).all()) and bool(((np.diff(starts) >= 0) | (np.diff(keys) > 0)).all()):
        return table
    return table.take(np.lexsort((starts, keys)))


def _compute() -> Any:
    return import_module("pyarrow.compute")
