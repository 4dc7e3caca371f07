"""What `deniable.read_estimates` and its like do: choose the source, read it, and say what is missing."""

import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aggregator.history.periods import Period, iso
from aggregator.history.window_reader import Joined, check_room
from aggregator.history.window_reader import read_windows as read_topic_windows
from analysis.arguments import check_name, check_type
from analysis.errors import AnalysisError
from analysis.periods import ALL_TIME, TimeGiven, period_between
from analysis.sources.files import LINES, Files, files_of, read_files, read_lines
from analysis.sources.topic import EstimateFilter, filter_of, read_topic_estimates
from analysis.sources.worker import read_worker
from analysis.tables.arrow_table import ArrowTable
from analysis.tables.estimate_table import estimate_schema
from analysis.tables.window_table import window_schema, window_table
from deploy.config.file import DEFAULT_FILE, Configuration, load
from deploy.query.blocking import read_topic
from estimators.collection import Collection

Config = str | os.PathLike[str] | Configuration


def read_estimates(
    config: Config | None = None,
    *,
    collection: str,
    start: TimeGiven | None = None,
    end: TimeGiven | None = None,
    last: str | None = None,
    provisional: bool = False,
    other: bool = False,
    files: Files | None = None,
    worker: str | None = None,
) -> ArrowTable:
    """Read the estimates of a collection: a row for each value of each window, of its newest revision.

    From the topic of estimates, unless `files` or `worker` is given; these need no Kafka.

    Parameters
    ----------
    config : the collection file, by default `deniable.yaml`; a file or worker needs none. With it, windows
        that were counted under other parameters than the file's are skipped, with a warning.
    collection : its name.
    start, end : windows wholly between them; by default all that the source has. ISO 8601 or a datetime,
        without a zone in local time; a date; or unix seconds.
    last : instead of start, the length of a period until end or now: "90m", "24h", "30d", "4w".
    provisional : True for estimates of windows that are not over, too.
    other : True for a last row of each window, `(other)`, with the reports in none of its values.
    files : a folder that `deniable export` wrote, files of it, or JSON lines as of `deniable watch`.
    worker : address of a worker's page, such as http://127.0.0.1:8321: its newest 60 windows at most.

    Returns
    -------
    ArrowTable with the columns of `docs/analysis.md`, by window.

    Raises
    ------
    AnalysisError if times, files or the address cannot be used, or pyarrow is not installed.
    CollectionFileError, and errors of Kafka.
    """
    check_name(collection)
    schema = estimate_schema()
    if files is not None and worker is not None:
        raise AnalysisError("give either files or worker")
    loaded = _configuration(config, is_needed=files is None and worker is None)
    period = period_between(start, end, last, time.time(), None)
    wanted = EstimateFilter(collection, None, period, provisional)
    if loaded is not None:
        wanted = filter_of(loaded.collection(collection), period, provisional=provisional)
    if files is not None:
        table, foreign = _estimates_of_files(files, schema, wanted, other=other)
    elif worker is not None:
        newest = read_worker(worker, wanted)
        table, foreign = newest.table(other=other), newest.foreign + wanted.foreign
    else:
        assert loaded is not None  # noqa: S101 - for mypy
        cluster, topics = loaded.cluster, loaded.topics
        newest = read_topic(loaded, topics.estimates, lambda: read_topic_estimates(cluster, topics, wanted))
        table, foreign = newest.table(other=other), newest.foreign + wanted.foreign
    return _answered(table, collection, period, _numbers(wanted.others), foreign)


def read_windows(
    config: Config | None = None,
    *,
    collection: str,
    start: TimeGiven | None = None,
    end: TimeGiven | None = None,
    last: str | None = None,
    files: Files | None = None,
) -> ArrowTable:
    """Read the counts of a collection's final windows: a row for each cohort of each window.

    They are counts of randomized reports, from which `rollup` and `decode` estimate.

    Parameters
    ----------
    config, collection, start, end, last : as of `read_estimates`.
    files : a folder that `deniable export --of windows` wrote, or files of it; needs no Kafka.

    Returns
    -------
    ArrowTable with the columns of `docs/analysis.md`, by window.

    Raises
    ------
    AnalysisError, CollectionFileError, and errors of Kafka.
    """
    check_name(collection)
    loaded = _configuration(config, is_needed=files is None)
    period = period_between(start, end, last, time.time(), None)
    if files is not None:
        fingerprint = None if loaded is None else f"{loaded.collection(collection).fingerprint:016x}"
        found = files_of(files, collection)
        table, others = read_files(found, window_schema(), collection, fingerprint, period)
        return _answered(table, collection, period, _numbers(others), 0)
    assert loaded is not None  # noqa: S101 - for mypy
    asked = loaded.collection(collection)
    windows, joined = read_counts(loaded, asked, period)
    passed_over = {f"{each:016x}": number for each, number in joined.others.items()}
    return _answered(window_table(asked, windows), collection, period, passed_over, joined.foreign)


def read_counts(
    loaded: Configuration, collection: Collection, period: Period
) -> tuple[Mapping[int, Any], Joined]:
    """Return counts of final windows from their topic, by start.

    Raises
    ------
    AnalysisError if they may be too many for memory.
    """
    if period.end < ALL_TIME.end:
        try:
            check_room(collection, period)
        except ValueError as error:
            raise AnalysisError(str(error).replace("from and to", "start and end")) from error
    cluster, topics = loaded.cluster, loaded.topics
    return read_topic(loaded, topics.windows, lambda: read_topic_windows(cluster, topics, collection, period))


def configuration_of(config: Config | None) -> Configuration:
    """Load the collection file, by default the one in this folder; CollectionFileError."""
    if isinstance(config, Configuration):
        return config
    if config is not None:
        check_type("config", config, (str, os.PathLike), "the path of a collection file, or a Configuration")
    return load(DEFAULT_FILE if config is None else Path(config))


def _configuration(config: Config | None, *, is_needed: bool) -> Configuration | None:
    return configuration_of(config) if is_needed or config is not None else None


def _numbers(others: Mapping[str, set[int]]) -> dict[str, int]:
    return {fingerprint: len(starts) for fingerprint, starts in sorted(others.items())}


def _estimates_of_files(files: Files, schema: Any, wanted: EstimateFilter, *, other: bool) -> tuple[Any, int]:
    found = files_of(files, wanted.name)
    lines = [each for each in found if each.suffix in LINES]
    if lines and len(lines) < len(found):
        raise AnalysisError("files must be either exported tables or JSON lines, got both: name one kind")
    if lines:
        newest = read_lines(lines, wanted)
        return newest.table(other=other), newest.foreign + wanted.foreign
    table, others = read_files(found, schema, wanted.name, wanted.fingerprint, wanted.period)
    wanted.others |= others
    if not wanted.provisional:
        table = table.filter(table["final"])
    if not other and len(table):
        is_value = table["is_other"].to_numpy() == 0
        table = table if is_value.all() else table.filter(is_value)
    return table, 0


def _answered(
    table: Any, collection: str, period: Period, passed_over: Mapping[str, int], foreign: int
) -> ArrowTable:
    """Warn of what was skipped, and put a table together."""
    for fingerprint, windows in passed_over.items():
        warnings.warn(
            f"{collection}: {windows} windows with other parameters (fingerprint {fingerprint}) skipped",
            stacklevel=3,
        )
    if foreign:
        warnings.warn(f"{collection}: {foreign} records are not of this version: skipped", stacklevel=3)
    about = {
        "collection": collection,
        "from": iso(period.start),
        "to": iso(period.end),
        "windows": len(table["window_start"].unique()),
        "passed_over": dict(passed_over),
        "foreign": foreign,
    }
    return ArrowTable(table, about)
