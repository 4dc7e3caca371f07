"""What `deniable.rollup` and `deniable.compare` do, with the figures of the commands."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Literal

import numpy as np

from deniable.aggregator.history.periods import Period, iso
from deniable.aggregator.history.rollup import coverage_of, record_of
from deniable.aggregator.history.window_reader import Joined, join_windows
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.arguments import check_name, check_type, numbers_of
from deniable.analysis.changes.joined_history import Definition, JoinedHistoryRecord, join_history
from deniable.analysis.comparison import JoinedPeriod, check_comparable, compare_periods
from deniable.analysis.errors import WrongArgumentError
from deniable.analysis.functions.blocking import read_topic
from deniable.analysis.functions.read import OF_FILES, Config, configuration_of, warn_of_deleted
from deniable.analysis.periods import (
    TimeGiven,
    check_window,
    default_seconds,
    named_period,
    period_between,
)
from deniable.analysis.roll_up import estimated, rollup_table
from deniable.analysis.sources.files import Files, files_of, read_files
from deniable.analysis.sources.left_out import (
    HeldSpan,
    joined_span,
    warn_of_contradictions,
    warn_of_others,
    warn_of_span,
)
from deniable.analysis.tables.arrow_table import ArrowTable
from deniable.analysis.tables.window_table import window_schema, windows_of
from deniable.config.file import Configuration
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import contradicts
from deniable.estimators.frequency.numbers.chosen_rows import with_growing_rows, with_rows
from deniable.estimators.frequency.significance import ALLOWED_RATES, FALSE_DISCOVERY_RATE

OF_COUNTS = "their counts cannot be added; rollup with former=[FILE] joins their estimates"
LOG = "log"
EDGES_ALLOWED = f"a list of ascending numbers, or '{LOG}'"
Edges = Iterable[float] | Literal["log"]
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
    edges: Edges | None = None,
) -> ArrowTable:
    """Estimate over all final windows that are wholly in a period, like the command `deniable rollup`.

    It warns, like `decode`, `grow` and `compare`, where the period begins before what the source still holds,
    and of windows that were left out, being of other parameters.

    Parameters
    ----------
    config : the collection file, by default `deniable.yaml`.
    collection, start, end, last : as of `read_estimates`; without start and last, the last day.
    other : True for a last row, `(other)`, of the reports in none of the values; not with `former`.
    files : a folder that `deniable export --of windows` wrote, or files of it; needs no Kafka.
    former : collection files of before changes of values or epsilon, to join the estimates under them.
    edges : of a number, between which its rows are: ascending numbers that are boundaries of its steps, or
        "log" for rows that grow twofold from one step on. Not with `former`, which joins no rows.

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
    if edges is not None:
        if former:
            raise WrongArgumentError("give either edges or former: of numbers the mean alone is joined")
        asked = with_edges(asked, edges)
    period = asked_period(asked, start, end, last)
    if former:
        if other:
            raise WrongArgumentError("give either other or former: joined estimates have no such row")
        return _history(loaded, definitions_of(asked, former), period, files).table()
    return rolled_up(loaded, asked, period, files, other=other)


def with_edges(collection: Collection, edges: Edges) -> Collection:
    """Return a collection whose estimates are of rows between these edges; parameters as of `rollup`.

    Raises
    ------
    WrongArgumentError if it is not of a number, or its reports have no such edges.
    """
    mechanism = collection.mechanism
    if (number := collection.number) is None:
        raise WrongArgumentError(
            f"edges need a collection with mechanism number, got {collection.name} with {mechanism.name}"
        )
    if isinstance(edges, str) and edges == LOG:
        return replace(collection, mechanism=with_growing_rows(number))
    try:
        return replace(collection, mechanism=with_rows(number, numbers_of("edges", edges, EDGES_ALLOWED)))
    except ValueError as error:
        raise WrongArgumentError(f"{collection.name}: {error}") from error


def definitions_of(collection: Collection, former: Sequence[Config]) -> list[Collection]:
    """Return a collection, and its other definitions in these files; those that define it alike add nothing.

    Raises
    ------
    CollectionFileError if a file cannot be read or lacks the name.
    """
    check_type("former", former, (list, tuple), "a list of collection files")
    found = [configuration_of(each).collection(collection.name) for each in former]
    others = {each.fingerprint: each for each in found if each.fingerprint != collection.fingerprint}
    return [collection, *others.values()]


def _history(
    loaded: Configuration, definitions: Sequence[Collection], period: Period, files: Files | None
) -> JoinedHistoryRecord:
    """Join the windows under each definition, the present one first, and their estimates; it warns, too."""
    read = [_joined(loaded, each, period, files) for each in definitions]
    is_all = read[0][0].others.keys() <= {each.fingerprint for each in definitions}
    spans = [(joined, held if is_all else None) for joined, held in read]
    _warn_of_period(loaded, definitions[0], period, files, spans)
    windows = [joined for joined, _ in read]
    present, *earlier = [Definition(*each) for each in zip(definitions, windows, strict=True)]
    record = join_history(present, earlier, period)
    if wrong := [part for part in record.parts if contradicts(part.diagnostics)]:
        whose = " and ".join(f"{iso(part.start)} to {iso(part.end)}" for part in wrong)
        warn_of_contradictions(record.collection, len(wrong), whose)
    warn_of_others(record.collection, record.fingerprint, record.passed_over, "give its file in former, too")
    return record


def compare(
    config: Config | None = None,
    *,
    collection: str,
    first: str | tuple[TimeGiven, TimeGiven],
    second: str | tuple[TimeGiven, TimeGiven],
    rate: float = FALSE_DISCOVERY_RATE,
    files: Files | None = None,
) -> ArrowTable:
    """Find which shares differ between two periods, like the command `deniable compare`.

    The test allows for the randomizers' noise alone: where other people report in each period, shares may
    differ although nobody changed, see docs/analysis.md.

    Parameters
    ----------
    config, collection, files : as of `rollup`.
    first, second : the periods: two times, or "2026-01", "2026-W05", "2026-01-31" or "START/END".
    rate : expected share of false discoveries among those with `significant`, at most; in [1e-9, 0.5].

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
    check_comparison_rate(rate)
    check_comparable(asked, *periods)
    sides = [JoinedPeriod(each, joined_windows(loaded, asked, each, files)) for each in periods]
    record = compare_periods(asked, sides[0], sides[1], rate)
    for period, diagnostics in record.fits():
        warn_of_contradictions(asked.name, int(contradicts(diagnostics)), period)
    return record.table()


def check_rate(rate: float) -> None:
    """Raise WrongArgumentError unless `rate` is a number in (0, 1)."""
    check_type("rate", rate, Real, "a number in (0, 1)")
    if not 0 < rate < 1:
        raise WrongArgumentError(f"rate must be in (0, 1), got {rate}")


def check_comparison_rate(rate: float) -> None:
    """Raise WrongArgumentError unless `rate` is a number in ALLOWED_RATES."""
    least, most = ALLOWED_RATES
    allowed = f"in [{least:g}, {most:g}]"
    check_type("rate", rate, Real, f"a number {allowed}")
    if not least <= rate <= most:
        raise WrongArgumentError(f"rate must be {allowed}, got {rate}")


def _asked(name: str, period: str | tuple[TimeGiven, TimeGiven]) -> Period:
    if isinstance(period, str):
        return named_period(period)
    check_type(name, period, (tuple, list), PERIOD_ALLOWED)
    if len(period) != 2:
        raise WrongArgumentError(f"{name} must be {PERIOD_ALLOWED}, got a list of {len(period)}")
    return period_between(period[0], period[1], None, 0, None)


def asked_period(
    collection: Collection, start: TimeGiven | None, end: TimeGiven | None, last: str | None
) -> Period:
    """Return the period asked for, as of `rollup`, once it is one that holds a window."""
    period = period_between(start, end, last, time.time(), default_seconds(collection))
    check_window(collection, period)
    return period


def rolled_up(
    loaded: Configuration, collection: Collection, period: Period, files: Files | None, *, other: bool
) -> ArrowTable:
    """Estimate over the windows of a period; parameters and errors as of `rollup`."""
    joined = joined_windows(loaded, collection, period, files)
    result = estimated(collection, joined)
    warn_of_contradictions(collection.name, int(contradicts(result.shared.diagnostics)), "the period")
    coverage = coverage_of(collection, period, joined)
    return rollup_table(record_of(collection, coverage, joined, result, whole=True), other=other)


def joined_windows(
    loaded: Configuration, collection: Collection, period: Period, files: Files | None
) -> Joined:
    """Join the windows of a period; it warns of what was left out."""
    joined, held = _joined(loaded, collection, period, files)
    _warn_of_period(loaded, collection, period, files, [(joined, None if joined.others else held)])
    others = {f"{each:016x}": windows for each, windows in joined.others.items()}
    warn_of_others(collection.name, f"{collection.fingerprint:016x}", others, OF_COUNTS)
    return joined


def _warn_of_period(
    loaded: Configuration,
    collection: Collection,
    period: Period,
    files: Files | None,
    read: Sequence[tuple[Joined, HeldSpan | None]],
) -> None:
    """Warn where the period begins before what the source has under any of the definitions read."""
    if files is not None:
        warn_of_span(collection.name, period, joined_span([held for _, held in read]), "the files", OF_FILES)
        return
    first = min((start for joined, _ in read for start in joined.reports), default=None)
    warn_of_deleted(loaded, collection, period, loaded.topics.windows, first)


def _joined(
    loaded: Configuration, collection: Collection, period: Period, files: Files | None
) -> tuple[Joined, HeldSpan | None]:
    """Join the windows of a period, and say what files hold in and out of it; None of a topic."""
    if files is not None:
        return _joined_of_files(collection, period, files)
    cluster, topics = loaded.cluster, loaded.topics
    read = read_topic(loaded, topics.windows, lambda: join_windows(cluster, topics, collection, period))
    return read, None


def _joined_of_files(collection: Collection, period: Period, files: Files) -> tuple[Joined, HeldSpan | None]:
    """Join the windows of a period, and say what the files hold in and out of it."""
    fingerprint = f"{collection.fingerprint:016x}"
    found = files_of(files, collection.name)
    table, others, held = read_files(found, window_schema(), collection.name, fingerprint, period)
    windows = windows_of(collection, table)
    shape = (collection.cohorts, collection.width)
    total = WindowCounts(np.zeros(shape, np.int64), np.zeros(shape[0], np.int64), packs=0, rejected=0)
    for counts in windows.values():
        total += counts
    reports = {start: counts.reports for start, counts in windows.items() if counts.reports}
    passed_over = {int(each, 16): len(starts) for each, starts in others.items()}
    return Joined(total, reports, [], passed_over, 0), held
