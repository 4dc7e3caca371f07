"""From the counts of past windows to exported files: the workers' estimates, in the layout of exports.

Rule: counts are written before estimates, which follow from them alone. So a run that goes on where another
one was killed estimates from the counts in the files, and randomizes nothing again.
"""

from collections.abc import Collection as Windows
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from deniable.aggregator.estimation.window_estimate import published_records
from deniable.aggregator.history.periods import Period
from deniable.aggregator.records.estimate import encode_estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.export.day_files import DayFiles
from deniable.analysis.sources.newest import NewestEstimates
from deniable.analysis.tables.window_table import window_table, windows_of
from deniable.deploy.backfill.past_counts import PastCounts
from deniable.estimators.collection import Collection


class PastFiles(NamedTuple):
    """The files of a run, of each kind or None."""

    counts: DayFiles | None
    estimates: DayFiles | None

    @property
    def both(self) -> list[DayFiles]:
        """Those there are, counts first."""
        return [files for files in self if files is not None]


class Unwritten(NamedTuple):
    """Starts of windows without an estimate: of too few reports, and of counts that no estimate fits."""

    few: set[int]
    unfit: set[int]


def unaccounted(past: PastCounts, files: PastFiles, seconds: int) -> set[int]:
    """Return the counted windows in periods of which the files have windows without an event of this input.

    What their clients have spent in those windows is not known here, so the budget could be exceeded.

    Parameters
    ----------
    seconds : length of a period.
    """
    if seconds <= past.collection.window_seconds:
        return set()
    known = past.present | past.counted
    lacking: set[int] = set()
    for period in {start // seconds for start in past.counted}:
        within = Period(period * seconds, (period + 1) * seconds)
        if not all(known >= each.windows_within(within) for each in files.both):
            lacking.add(period)
    return {start for start in past.counted if start // seconds in lacking}


def write_windows(past: PastCounts, files: PastFiles, starts: Windows[int]) -> Unwritten:
    """Write counted windows, all of a file at once, and estimates that an earlier run left out.

    Raises
    ------
    OSError or AnalysisError if a file cannot be written.
    """
    unwritten = Unwritten(set(), set())
    if files.counts is not None:
        for same in _by_file(starts, files.counts):
            totals = {start: past.totals(start) for start in same}
            files.counts.merge(
                window_table(past.collection, {s: each for s, each in totals.items() if each.reports})
            )
    if files.estimates is not None:
        for same in _by_file({*starts, *past.present}, files.estimates):
            totals = {start: past.totals(start) for start in same if start in starts}
            totals |= _stored(
                past.collection, files.counts, files.estimates, [*past.present.intersection(same)]
            )
            files.estimates.merge(_estimates(past.collection, totals, unwritten))
    return unwritten


def _by_file(starts: Iterable[int], files: DayFiles) -> list[list[int]]:
    """Return windows by the file that they belong to."""
    return [[*same] for _, same in groupby(sorted(starts), lambda start: start // files.seconds)]


def _stored(
    collection: Collection, counts: DayFiles | None, estimates: DayFiles, starts: list[int]
) -> dict[int, WindowCounts]:
    """Return the counts in the files of those windows, all of one file of estimates, that it lacks."""
    if counts is None or not starts:
        return {}
    found: dict[int, WindowCounts] = {}
    for same in _by_file({*starts} - estimates.windows_beside(starts[0]), counts):
        stored = windows_of(collection, counts.table_beside(same[0]))
        found |= {start: stored[start] for start in same if start in stored}
    return found


def _estimates(collection: Collection, windows: Mapping[int, WindowCounts], unwritten: Unwritten) -> Any:
    """Return the pyarrow.Table of the final estimates of windows, by start, as an export has them."""
    newest = NewestEstimates()
    for start, counts in windows.items():
        if counts.reports < max(1, collection.minimum_reports):
            unwritten.few.add(start)
            continue
        try:
            records = published_records(collection, start, counts, final=True)
        except (ValueError, ArithmeticError, IndexError):  # as workers, which publish nothing then
            unwritten.unfit.add(start)
            continue
        for record in records:
            if newest.add(encode_estimate(record)):
                newest.convert(newest.taken())
    return newest.table(other=True)
