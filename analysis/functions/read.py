"""What `deniable.read_estimates` and its like do: choose the source, read it, and say what is missing."""

import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deniable.aggregator.history.periods import Period, iso
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.history.window_reader import read_windows as read_topic_windows
from deniable.analysis.arguments import check_name, check_type
from deniable.analysis.errors import WrongArgumentError, arrow
from deniable.analysis.functions.blocking import read_topic, run
from deniable.analysis.periods import ALL_TIME, TimeGiven, check_room, period_between
from deniable.analysis.sources.files import LINES, Files, files_of, read_files, read_lines
from deniable.analysis.sources.left_out import (
    Remedies,
    deleted_sentence,
    warn,
    warn_of_contradictions,
    warn_of_mixture,
    warn_of_others,
    warn_of_span,
)
from deniable.analysis.sources.topic import EstimateFilter, deleted_before, filter_of, read_topic_estimates
from deniable.analysis.sources.worker import read_worker
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.estimate_table import estimate_schema
from deniable.analysis.tables.revisions import revisions_of
from deniable.analysis.tables.window_table import window_schema, window_table
from deniable.config.file import DEFAULT_FILE, Configuration, WrongUseError, load
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import LIMIT
from deniable.protocol.words import number_of

Config = str | os.PathLike[str] | Configuration

OF_FILES = Remedies(
    "export earlier windows, as long as their topic keeps them, or backfill them",
    "export later windows once they are final",
)
OF_WORKER = Remedies(
    "read the topic, or files that deniable export wrote", "ask again once later windows are final"
)


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

    From the topic of estimates, unless `files` or `worker` is given; these need no Kafka. It warns where the
    period begins before what the source still holds, and where windows of several definitions are in the
    table.

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
        raise WrongArgumentError("give either files or worker")
    loaded = _configuration(
        config, is_needed=files is None and worker is None, instead=", or files= or worker="
    )
    period = period_between(start, end, last, time.time(), None)
    wanted = EstimateFilter(collection, None, period, provisional)
    if loaded is not None:
        wanted = filter_of(loaded.collection(collection), period, provisional=provisional)
    if files is not None:
        table, foreign = _estimates_of_files(files, schema, wanted, other=other)
    elif worker is not None:
        newest = read_worker(worker, wanted)
        table, foreign = newest.table(other=other), newest.foreign + wanted.foreign
        warn_of_span(collection, period, wanted.held, "the records that this worker keeps", OF_WORKER)
    else:
        assert loaded is not None  # noqa: S101 - for mypy
        cluster, topics = loaded.cluster, loaded.topics
        newest = read_topic(loaded, topics.estimates, lambda: read_topic_estimates(cluster, topics, wanted))
        table, foreign = newest.table(other=other), newest.foreign + wanted.foreign
        asked = loaded.collection(collection)
        warn_of_deleted(loaded, asked, period, topics.estimates, _first_of(table))
        if not len(table) and not wanted.others:
            warn(_nothing_sentence(asked, period, provisional=provisional))
    warn_of_contradictions(collection, _contradicted(table))
    return _answered(table, wanted.fingerprint, collection, period, _numbers(wanted.others), foreign)


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
    loaded = _configuration(config, is_needed=files is None, instead=", or files=")
    period = period_between(start, end, last, time.time(), None)
    if files is not None:
        fingerprint = None if loaded is None else f"{loaded.collection(collection).fingerprint:016x}"
        found = files_of(files, collection)
        read = read_files(found, window_schema(), collection, fingerprint, period)
        warn_of_span(collection, period, None if read.others else read.held, "the files", OF_FILES)
        return _answered(read.table, fingerprint, collection, period, _numbers(read.others), 0)
    assert loaded is not None  # noqa: S101 - for mypy
    asked = loaded.collection(collection)
    windows, joined = read_counts(loaded, asked, period)
    warn_of_deleted(loaded, asked, period, loaded.topics.windows, min(windows, default=None))
    passed_over = {f"{each:016x}": number for each, number in joined.others.items()}
    fingerprint = f"{asked.fingerprint:016x}"
    return _answered(
        window_table(asked, windows), fingerprint, collection, period, passed_over, joined.foreign
    )


def warn_of_deleted(
    loaded: Configuration, collection: Collection, period: Period, topic: str, first: int | None
) -> None:
    """Warn if a topic has deleted records of a period.

    Parameters
    ----------
    loaded, collection, period, topic : what was read.
    first : start of the first window that was found, unix seconds; None if none was.
    """
    cluster, partitions = loaded.cluster, loaded.topics.partitions
    kept_from = run(lambda: deleted_before(cluster, topic, partitions, collection, period, first))
    if kept_from is not None:
        warn(deleted_sentence(collection.name, period, kept_from, topic))


def read_counts(
    loaded: Configuration, collection: Collection, period: Period
) -> tuple[Mapping[int, Any], Joined]:
    """Return counts of final windows from their topic, by start.

    Raises
    ------
    WrongArgumentError if they may be too many for memory.
    """
    if period.end < ALL_TIME.end:
        check_room(collection, period)
    cluster, topics = loaded.cluster, loaded.topics
    return read_topic(loaded, topics.windows, lambda: read_topic_windows(cluster, topics, collection, period))


def configuration_of(config: Config | None, instead: str = "") -> Configuration:
    """Load the collection file, by default the one in this folder.

    Parameters
    ----------
    config : see `read_estimates`.
    instead : arguments that the caller needs no file with, with a blank before them, for the message.

    Raises
    ------
    CollectionFileError.
    """
    if isinstance(config, Configuration):
        return config
    if config is not None:
        check_type("config", config, (str, os.PathLike), "the path of a collection file, or a Configuration")
    path = DEFAULT_FILE if config is None else Path(config)
    if path == DEFAULT_FILE and not path.exists():
        raise WrongUseError(
            f"there is no {path} in this folder: give config=, the path of the collection file{instead}"
        )
    return load(path)


def _configuration(config: Config | None, *, is_needed: bool, instead: str) -> Configuration | None:
    return configuration_of(config, instead) if is_needed or config is not None else None


def _numbers(others: Mapping[str, set[int]]) -> dict[str, int]:
    return {fingerprint: len(starts) for fingerprint, starts in sorted(others.items())}


def _estimates_of_files(files: Files, schema: Any, wanted: EstimateFilter, *, other: bool) -> tuple[Any, int]:
    found = files_of(files, wanted.name)
    lines = [each for each in found if each.suffix in LINES]
    if lines and len(lines) < len(found):
        raise WrongArgumentError(
            "files must be either exported tables or JSON lines, got both: name one kind"
        )
    if lines:
        newest = read_lines(lines, wanted)
        held = None if wanted.others else wanted.held
        warn_of_span(wanted.name, wanted.period, held, "the files", OF_FILES)
        return newest.table(other=other), newest.foreign + wanted.foreign
    read = read_files(
        found, schema, wanted.name, wanted.fingerprint, wanted.period, provisional=wanted.provisional
    )
    table = read.table
    wanted.others |= read.others
    warn_of_span(wanted.name, wanted.period, None if read.others else read.held, "the files", OF_FILES)
    if not other and len(table):
        is_value = table["is_other"].to_numpy() == 0
        table = table if is_value.all() else table.filter(is_value)
    return table, 0


def _contradicted(table: Any) -> int:
    """Return the number of windows of a table of estimates whose counts no true values explain."""
    fits = table["fit_p_value"].fill_null(1.0).to_numpy()
    return len(revisions_of(table.filter(arrow("a table of estimates").array(fits < LIMIT))))


def _nothing_sentence(collection: Collection, period: Period, *, provisional: bool) -> str:
    """Say that a topic holds no estimates of a period, with the remedy."""
    if not collection.entries:
        return (
            f"{collection.name}: it has no candidates, so no estimates of values: read its counts with "
            "read_windows, and find texts in them with decode or grow"
        )
    asked = f" from {iso(period.start)} on" if period.end >= ALL_TIME.end else f" in {period}"
    asked = "" if period == ALL_TIME else asked
    which = "estimates" if provisional else "final estimates"
    return (
        f"{collection.name}: the topic holds no {which}{asked}: give another period, or wait until a window "
        "has minimum_reports and is final"
    )


def _first_of(table: Any) -> int | None:
    """Start of the first window of a table, unix seconds."""
    return int(table["window_start"].cast("int64").to_numpy().min()) // 1_000_000 if len(table) else None


def _answered(
    table: Any,
    fingerprint: str | None,
    collection: str,
    period: Period,
    passed_over: Mapping[str, int],
    foreign: int,
) -> ArrowTable:
    """Warn of what was skipped and what is mixed, and put a table together."""
    if fingerprint is None:
        warn_of_mixture(collection, Counter(each for each, _ in revisions_of(table)))
    else:
        warn_of_others(collection, fingerprint, passed_over)
    if foreign:
        warn(f"{collection}: skipped {number_of(foreign, 'record')}, not of this version")
    about = {
        "collection": collection,
        "from": iso(period.start),
        "to": iso(period.end),
        "windows": len(table["window_start"].unique()),
        "passed_over": dict(passed_over),
        "foreign": foreign,
    }
    return ArrowTable(table, about)
