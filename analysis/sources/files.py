"""Reads tables from files: folders that `deniable export` wrote, single files of it, and JSON lines."""

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np

from deniable.aggregator.history.periods import Period
from deniable.analysis.arguments import check_type
from deniable.analysis.errors import AnalysisError, WrongArgumentError, arrow
from deniable.analysis.sources.left_out import HeldSpan, joined_span, warn, warn_of_names
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.sources.topic import EstimateFilter
from deniable.analysis.tables.export_state import state_folder
from deniable.analysis.tables.file_formats import FORMATS, read_table
from deniable.analysis.tables.revisions import newest_of, revisions_of

LINES = (".jsonl", ".ndjson", ".json")
ENDINGS = (*(f".{each}" for each in FORMATS), *LINES)
PARTITION = "collection="
MOST_HEADER = 10_000  # characters
NOTHING = "the files hold nothing of any collection"
FILES_ALLOWED = "the path of a file or folder, or a list of such paths"

Files = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class FilesRead(NamedTuple):
    """What files hold of a collection.

    Parameters
    ----------
    table : pyarrow.Table, by fingerprint and window: the newest revision of each window in the period.
    others : starts of windows in the period under other parameters, by fingerprint in hex.
    held : windows of the parameters asked for, in and out of the period; None if there are none.
    """

    table: Any
    others: dict[str, set[int]]
    held: HeldSpan | None


def files_of(given: Files, collection: str) -> list[Path]:
    """Return the files that may hold rows of a collection, sorted.

    Parameters
    ----------
    given : files and folders. Of a folder, all .parquet, .csv and .jsonl files below it count, whatever
        their depth, except those in a folder `collection=NAME` of another collection, unless their rows or
        lines have a collection of their own.
    collection : its name.

    Raises
    ------
    AnalysisError if one is of another type or does not exist, or there is no file in it.
    """
    check_type("files", given, (str, os.PathLike, Iterable), FILES_ALLOWED)
    places = [Path(given)] if isinstance(given, str | os.PathLike) else _paths(given)
    if not places:
        raise WrongArgumentError("files must be files or folders that exist, got none")
    found: list[Path] = []
    for place in places:
        if str(place).startswith("s3:"):
            raise WrongArgumentError(
                f"files must be on this machine, got {given}: copy them, or read them with polars or pyarrow"
            )
        if not place.exists():
            raise WrongArgumentError(f"files must be files or folders that exist, got {place}")
        if not place.is_dir() and place.suffix not in ENDINGS:
            raise WrongArgumentError(f"a file must end in .parquet, .csv or .jsonl, got {place}")
        inside = sorted(_inside(place)) if place.is_dir() else [place]
        if not inside and not (place.is_dir() and state_folder(place).is_dir()):  # else nothing is final yet
            raise AnalysisError(f"{place} must hold .parquet, .csv or .jsonl files, and holds none")
        found += inside
    ours = [each for each in found if collection_of(each) in (None, collection) or _names_its_own(each)]
    if found and not ours:
        warn_of_names(collection, {name for each in found if (name := collection_of(each)) is not None})
    return ours


def collection_of(path: Path) -> str | None:
    """Return the collection that the innermost folder `collection=NAME` says; None if there is none."""
    for part in reversed(path.absolute().parts[:-1]):
        if part.startswith(PARTITION):
            return unquote(part.removeprefix(PARTITION))
    return None


def _names_its_own(path: Path) -> bool:
    """Whether a file says its collection itself: JSON lines do, and CSV of the page has a column of it."""
    if path.suffix != ".csv":
        return path.suffix in LINES
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        return "collection" in next(csv.reader([file.readline(MOST_HEADER)]), [])


def read_files(
    files: Sequence[Path],
    schema: Any,
    collection: str,
    fingerprint: str | None,
    period: Period,
    *,
    provisional: bool = True,
) -> FilesRead:
    """Return the newest revision of each window of a collection that is wholly in a period.

    Parameters
    ----------
    files : .parquet and .csv.
    schema : `estimate_schema` or `window_schema`.
    fingerprint : in hex; None for any.
    provisional : False for the newest final revision of each window, whatever provisional one is newer.

    Raises
    ------
    AnalysisError.
    """
    pa = arrow("reading files")
    others: dict[str, set[int]] = {}
    tables, names, spans = list[Any](), set[str](), list[HeldSpan | None]()
    for path in files:
        named = collection_of(path)
        table = read_table(path, schema, {} if named is None else {"collection": named})
        names.update(table["collection"].unique().to_pylist())
        table = _of_collection(table, collection, provisional=provisional)
        if fingerprint is not None and len(table):
            compute = _compute()
            is_ours = compute.equal(table["fingerprint"].cast(pa.string()), fingerprint)
            for other, start in revisions_of(_within(table.filter(compute.invert(is_ours)), period)):
                others.setdefault(other, set()).add(start // 1_000_000)
            table = table.filter(is_ours)
        spans.append(_span_of(table))
        table = _within(table, period)
        if len(table):
            tables.append(table)
    if names and collection not in names:
        warn_of_names(collection, names)
    if files and not names:
        warn(f"{collection}: {NOTHING}")
    if not tables:
        return FilesRead(schema.empty_table(), others, joined_span(spans))
    table = _ordered(pa.concat_tables(newest_of(tables)).unify_dictionaries())
    return FilesRead(table, others, joined_span(spans))


def read_lines(files: Sequence[Path], wanted: EstimateFilter) -> NewestEstimates:
    """Read JSON lines of estimates, as `deniable watch` writes them in a pipe."""
    newest, any_record = NewestEstimates(), False
    for path in files:
        with path.open("rb") as lines:
            for line in lines:
                record = line.strip()
                any_record = any_record or bool(record)
                value = wanted.wanted(f"{wanted.name}/".encode(), record) if record else None
                if value is not None and newest.add(value):
                    newest.convert(newest.taken())
    if wanted.named and wanted.name not in wanted.named:
        warn_of_names(wanted.name, wanted.named)
    if not any_record:
        warn(f"{wanted.name}: {NOTHING}")
    return newest


def _paths(given: Iterable[str | os.PathLike[str]]) -> list[Path]:
    paths = list(given)
    for each in paths:
        check_type("files", each, (str, os.PathLike), FILES_ALLOWED)
    return [Path(each) for each in paths]


def _inside(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        hidden = any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
        if path.suffix in ENDINGS and not hidden and path.is_file():
            yield path


def _of_collection(table: Any, collection: str, *, provisional: bool) -> Any:
    """Rows of a collection, of final windows alone unless provisional ones are wanted, too."""
    chosen = _compute().equal(table["collection"].cast("string"), collection)
    if not provisional and "final" in table.column_names:
        chosen = _compute().and_(chosen, table["final"])
    return _filtered(table, chosen)


def _within(table: Any, period: Period) -> Any:
    """Rows whose windows are wholly in a period."""
    compute = _compute()
    start, end = _moments(table)
    return _filtered(
        table,
        compute.and_(
            compute.greater_equal(start, period.start * 1_000_000),
            compute.less_equal(end, period.end * 1_000_000),
        ),
    )


def _span_of(table: Any) -> HeldSpan | None:
    if not len(table):
        return None
    compute = _compute()
    start, end = _moments(table)
    seconds = compute.max(compute.subtract(end, start)).as_py()
    figures = (compute.min(start).as_py(), compute.max(end).as_py(), seconds)
    return HeldSpan(*(each // 1_000_000 for each in figures))


def _moments(table: Any) -> tuple[Any, Any]:
    """Start and end of each row's window, in microseconds."""
    return table["window_start"].cast("int64"), table["window_end"].cast("int64")


def _filtered(table: Any, chosen: Any) -> Any:
    return table if _compute().all(chosen).as_py() else table.filter(chosen)


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
