"""What `deniable.rollup`, `deniable.decode` and `deniable.compare` do, with the figures of the commands."""

import time
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path

import numpy as np

from aggregator.history.periods import Period
from aggregator.history.rollup import coverage_of, record_of, too_few_reports
from aggregator.history.rollup import roll_up as roll_up_joined
from aggregator.history.window_reader import Joined, join_windows
from aggregator.records.window_counts import WindowCounts
from analysis.arguments import check_name, check_type
from analysis.changes.history_record import JoinedHistoryRecord
from analysis.changes.joined_history import Definition, join_history
from analysis.comparison import ComparisonRecord, JoinedPeriod, check_comparable, compare_periods
from analysis.errors import AnalysisError
from analysis.periods import DAY_SECONDS, TimeGiven, named_period, period_between
from analysis.rollup_table import rollup_table
from analysis.sources.files import Files, files_of, read_files
from analysis.tables.arrow_table import ArrowTable
from analysis.tables.window_table import window_schema, windows_of
from deploy.config.file import Configuration
from deploy.query.blocking import read_topic
from deploy.query.tables import Config, configuration_of
from estimators.collection import ANY_TEXT, Collection

CANDIDATES_ALLOWED = "a list of distinct strings, at least one"
PERIOD_ALLOWED = "two times, or a text such as '2026-01', '2026-01-31' or 'START/END'"


def rollup(
    config: Config | None = None,
    *,
    collection: str,
    start: TimeGiven | None = None,
    end: TimeGiven | None = None,
    last: str | None = None,
    other: bool = False,
    files: Files | None = None,
    former: Sequence[Config] = (),
) -> ArrowTable:
    """Estimate over all final windows that are wholly in a period, like the command `deniable rollup`.

    Parameters
    ----------
    config : the collection file, by default `deniable.yaml`.
    collection, start, end, last : as of `read_estimates`; without start and last, the last day.
    other : True for a last row, `(other)`, of the reports in none of the values; not with `former`.
    files : a folder that `deniable export --of windows` wrote, or files of it; needs no Kafka.
    former : collection files of before changes of values or epsilon, to join the estimates under them.

    Returns
    -------
    ArrowTable with a row for each value; `about` has the coverage, as in the JSON of the command. With
    `former`, its columns are those of `JoinedHistoryRecord`, and `about` has the parts.

    Raises
    ------
    AnalysisError if too few reports are in the period, or files or times cannot be used.
    CollectionFileError, and errors of Kafka.
    """
    check_name(collection)
    loaded = configuration_of(config)
    asked = loaded.collection(collection)
    period = _period(asked, start, end, last)
    if former:
        return joined_history(loaded, asked, former, period, files).table()
    return _rolled_up(loaded, asked, period, files, other=other)


def joined_history(
    loaded: Configuration,
    collection: Collection,
    former: Sequence[Config],
    period: Period,
    files: Files | None = None,
) -> JoinedHistoryRecord:
    """Join the windows under each definition, and their estimates.

    Parameters
    ----------
    loaded, collection : the present definition.
    former : collection files that define the name otherwise; those that define it alike add nothing.
    period, files : see `rollup`.

    Raises
    ------
    AnalysisError as `rollup`; CollectionFileError if a file cannot be read or lacks the name.
    """
    check_type("former", former, (list, tuple), "a list of collection files")
    others = {each.fingerprint: each for each in (_defined(one, collection.name) for one in former)}
    others.pop(collection.fingerprint, None)
    definitions = [
        Definition(each, _joined(loaded, each, period, files)) for each in (collection, *others.values())
    ]
    return join_history(definitions[0], definitions[1:], period)


def _defined(config: Config, name: str) -> Collection:
    return configuration_of(config).collection(name)


def decode(
    config: Config | None = None,
    *,
    collection: str,
    candidates: Sequence[str],
    start: TimeGiven | None = None,
    end: TimeGiven | None = None,
    last: str | None = None,
    other: bool = False,
    files: Files | None = None,
) -> ArrowTable:
    """Look for other strings in the final windows of a period, like the command `deniable decode`.

    Parameters
    ----------
    config, collection, start, end, last, other, files : as of `rollup`.
    candidates : distinct strings to look for, at least one.

    Returns
    -------
    ArrowTable with a row for each candidate; see `rollup`.

    Raises
    ------
    AnalysisError as `rollup`, and if the collection's values cannot change later.
    """
    check_name(collection)
    loaded = configuration_of(config)
    asked = loaded.collection(collection)
    if not isinstance(asked.mechanism, ANY_TEXT):
        raise AnalysisError(
            "decode needs a collection with mechanism rappor, local-hash, local-hash-longitudinal or "
            f"prefix-tree, got {collection} with {asked.mechanism.name}, whose values cannot change later; "
            "use rollup"
        )
    if isinstance(candidates, str):
        raise AnalysisError(f"candidates must be {CANDIDATES_ALLOWED}, got a text")
    check_type("candidates", candidates, Sequence, CANDIDATES_ALLOWED)
    for each in candidates:
        check_type("candidates", each, str, CANDIDATES_ALLOWED)
    if not candidates or len(set(candidates)) != len(candidates):
        raise AnalysisError(
            f"candidates must be {CANDIDATES_ALLOWED}, got {len(candidates)}, {len(set(candidates))} distinct"
        )
    wanted = replace(asked, candidates=tuple(candidates))
    return _rolled_up(loaded, wanted, _period(asked, start, end, last), files, other=other)


def compare(
    config: Config | None = None,
    *,
    collection: str,
    first: str | tuple[TimeGiven, TimeGiven],
    second: str | tuple[TimeGiven, TimeGiven],
    rate: float = 0.05,
    files: Files | None = None,
) -> ArrowTable:
    """Find which shares differ between two periods, like the command `deniable compare`.

    Parameters
    ----------
    config, collection, files : as of `rollup`.
    first, second : the periods: two times, or a text such as "2026-01", "2026-01-31" or "START/END".
    rate : expected share of false discoveries among those with `significant`, at most; in (0, 1).

    Returns
    -------
    ArrowTable with a row for each value.

    Raises
    ------
    AnalysisError if periods overlap, hold too few reports, or the collection is of numbers.
    """
    check_name(collection)
    loaded = configuration_of(config)
    asked = loaded.collection(collection)
    periods = [_asked("first", first), _asked("second", second)]
    return comparison(loaded, asked, (periods[0], periods[1]), rate, files).table()


def comparison(
    loaded: Configuration,
    collection: Collection,
    periods: tuple[Period, Period],
    rate: float,
    files: Files | None = None,
) -> ComparisonRecord:
    """Join the windows of both periods, and compare them; AnalysisError as `compare`."""
    check_type("rate", rate, Real, "a number in (0, 1)")
    if not 0 < rate < 1:
        raise AnalysisError(f"rate must be in (0, 1), got {rate}")
    check_comparable(collection, *periods)
    sides = [JoinedPeriod(each, _joined(loaded, collection, each, files)) for each in periods]
    return compare_periods(collection, sides[0], sides[1], rate)


def _asked(name: str, period: str | tuple[TimeGiven, TimeGiven]) -> Period:
    if isinstance(period, str):
        return named_period(period)
    check_type(name, period, (tuple, list), PERIOD_ALLOWED)
    if len(period) != 2:
        raise AnalysisError(f"{name} must be {PERIOD_ALLOWED}, got {len(period)} items")
    return period_between(period[0], period[1], None, 0, None)


def _period(
    collection: Collection, start: TimeGiven | None, end: TimeGiven | None, last: str | None
) -> Period:
    length = max(DAY_SECONDS, 2 * collection.window_seconds)
    period = period_between(start, end, last, time.time(), length)
    if not period.windows(collection.window_seconds):
        raise AnalysisError(
            f"the period must hold at least 1 whole window of {collection.window_seconds} s, got {period}"
        )
    return period


def _rolled_up(
    loaded: Configuration, collection: Collection, period: Period, files: Files | None, *, other: bool
) -> ArrowTable:
    joined = _joined(loaded, collection, period, files)
    coverage = coverage_of(collection, period, joined)
    try:
        result = roll_up_joined(collection, joined)
    except (ValueError, ArithmeticError) as error:
        raise AnalysisError(f"no estimate fits the counts: {error}") from error
    if result is None:
        raise AnalysisError(too_few_reports(collection, joined))
    return rollup_table(record_of(collection, coverage, joined, result, whole=True), other=other)


def _joined(loaded: Configuration, collection: Collection, period: Period, files: Files | None) -> Joined:
    if files is None:
        cluster, topics = loaded.cluster, loaded.topics
        return read_topic(loaded, topics.windows, lambda: join_windows(cluster, topics, collection, period))
    fingerprint = f"{collection.fingerprint:016x}"
    found = files_of(files, collection.name)
    table, others = read_files(
        [Path(each) for each in found], window_schema(), collection.name, fingerprint, period
    )
    windows = windows_of(collection, table)
    shape = (collection.cohorts, collection.width)
    total = WindowCounts(np.zeros(shape, np.int64), np.zeros(shape[0], np.int64), packs=0, rejected=0)
    for counts in windows.values():
        total += counts
    reports = {start: counts.reports for start, counts in windows.items()}
    passed_over = {int(each, 16): len(starts) for each, starts in others.items()}
    return Joined(total, reports, [], passed_over, 0)
