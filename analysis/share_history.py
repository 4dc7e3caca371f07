"""What changed in a period, and the shares of its windows with intervals that hold at every look."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

import msgspec
import numpy as np

from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import WindowCoverage, coverage_of
from deniable.aggregator.history.share_changes import ChangeMonitor
from deniable.aggregator.history.share_sequences import ShareSequence, sequence_at
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.history.window_shares import shares_of_counts
from deniable.aggregator.records.share_change import ShareChange
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.fit import fit_p_value
from deniable.estimators.rollup.overlap import client_overlap


class ChangesAnswer(msgspec.Struct, frozen=True):
    """For programs: one JSON object.

    Parameters
    ----------
    rate : false alarms per year, at most, while no share changes.
    changes : by the time at which they were found, in the period.
    sequence : of the windows in the period, of a number that of its mean; null if no window has
        minimum_reports.
    fit_p_value : of the test of fit of the period's counts, where clients may return.
    """

    version: int
    collection: str
    fingerprint: str
    rate: float
    coverage: WindowCoverage
    changes: list[ShareChange]
    sequence: ShareSequence | None
    fit_p_value: float = 1.0


def changes_in(
    collection: Collection, period: Period, windows: Mapping[int, WindowCounts], joined: Joined, rate: float
) -> tuple[ChangesAnswer, Mapping[str, float]]:
    """Find the changes in a period; return them, and the unbiased figures of the newest window, in units.

    Parameters
    ----------
    collection, period : with values or of a number.
    windows, joined : the final windows since `period_needed`, by start, and what was read.
    rate : false alarms per year, at most, while no share changes, > 0.

    Raises
    ------
    ValueError, ArithmeticError if no estimate fits the counts of a window.
    """
    monitor = ChangeMonitor(collection, rate, epochs=None)
    shares = [
        found for start, each in windows.items() if (found := shares_of_counts(collection, start, each))
    ]
    for each in shares:
        monitor.add(each)
    within = [each for each in shares if each.start >= period.start]
    joined = replace(
        joined,
        reports={start: number for start, number in joined.reports.items() if start >= period.start},
        incomplete=[start for start in joined.incomplete if start >= period.start],
    )
    answer = ChangesAnswer(
        version=1,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        rate=rate,
        coverage=coverage_of(collection, period, joined),
        changes=[each for each in monitor.update() if each.found > period.start],
        sequence=sequence_at(collection, within) if within else None,
        fit_p_value=fit_of([each for start, each in windows.items() if start >= period.start], collection),
    )
    return answer, monitor.newest()


def fit_of(windows: Sequence[WindowCounts], collection: Collection) -> float:
    """Return the p-value of the test of fit of all windows together; 1 without any."""
    if not windows:
        return 1.0
    total = reduce(add, windows)
    reports = np.array([each.reports for each in windows], np.int64)
    repeats = client_overlap(reports) if collection.mechanism.repeats_noise else 1.0
    return fit_p_value(total.counts, total.cohort_sizes, collection.mechanism, repeats)
