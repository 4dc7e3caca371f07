"""The parts of a period, each of windows under the same parameters: their shares, ready to be joined."""

from collections.abc import Mapping, Sequence
from math import inf, nan, sqrt
from typing import NamedTuple

import numpy as np

from deniable.aggregator.history.period_shares import shares_of_roll_up
from deniable.aggregator.history.share_sequences import ALPHA
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.views.former_estimates import FormerDefinition, WindowFigures
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.intervals.confidence_sequence import quantiles_of_any
from deniable.estimators.rollup.overlap import RollUp

FRESH = ("k-rr", "k-rr-pair", "one-hot-pair", "local-hash")  # mechanisms that draw noise anew for each report
ALIKE = ("rappor", "local-hash-longitudinal")  # whose errors of misfit or collisions are alike in all parts


class Part(NamedTuple):
    """Shares of n values in one part. Arrays float64 (n,), fractions; NaN and inf where it has no share.

    Parameters
    ----------
    windows : reports by start, unix seconds, ascending.
    end : of the last window, unix seconds.
    share, error, shared_error, misfit : see `inverse_variance.join_shares`.
    first : the part of a value's reports that its first window has, in (0, 1].
    half : float64 (2, n), of intervals that hold whatever windows have in common, see
        `confidence_sequence.sequence_of_any`: for each value, and for all at once.
    """

    windows: Mapping[int, int]
    end: int
    share: FloatArray
    error: FloatArray
    shared_error: FloatArray
    misfit: FloatArray
    first: FloatArray
    half: FloatArray


def part_of_estimates(each: FormerDefinition, values: Sequence[str], places: Mapping[int, int]) -> Part:
    """Return the mean over windows, weighted by reports: what the sum of their counts would give.

    Parameters
    ----------
    each : of former parameters.
    values : labels of all parts.
    places : of its windows by start, in the order of all windows of all parts, from 1.
    """
    windows, mechanism = each.windows, each.record.mechanism
    totals = _Totals(values)
    for start, window in windows.items():
        totals.add(window, places[start])
    is_there = totals.reports > 0
    reports = np.where(is_there, totals.reports, 1)
    alike = totals.alike / reports
    error = np.where(is_there, np.sqrt(totals.variance / reports**2 + alike**2), inf)
    return Part(
        windows={start: window.reports for start, window in windows.items()},
        end=max(window.end for window in windows.values()),
        share=np.where(is_there, totals.share / reports, nan),
        error=error,
        shared_error=error if mechanism in FRESH else np.where(is_there, totals.error / reports, inf),
        misfit=np.where(is_there, alike, 0) if mechanism in ALIKE else np.zeros(len(values)),
        first=np.where(is_there, totals.first / reports, 1),
        half=np.where(is_there, totals.half / reports, inf),
    )


def part_of_counts(
    collection: Collection, joined: Joined, result: RollUp, values: Sequence[str], places: Mapping[int, int]
) -> Part:
    """Return the shares of a roll-up.

    Parameters
    ----------
    collection, joined, result : the present parameters, their windows, and the roll-up of these.
    values, places : see `part_of_estimates`.
    """
    shares = shares_of_roll_up(collection, result).placed(collection.labels(), values)
    reports = np.array(list(joined.reports.values()), np.float64)
    place = np.array([places[start] for start in joined.reports])
    # The variance of a report is taken to be the same in all windows, see `sequence_of_totals`.
    wider = [np.sqrt(reports) @ quantiles_of_any(place, alpha) for alpha in _levels(len(values))]
    return Part(
        windows=joined.reports,
        end=collection.window_end(max(joined.reports)),
        share=shares.share,
        error=shares.std_error,
        shared_error=shares.shared_error,
        misfit=shares.misfit,
        first=np.full(len(values), reports[0] / reports.sum()),
        half=np.outer(wider, shares.std_error) / sqrt(reports.sum()),
    )


class _Totals:
    """Sums over windows for each value; each term is weighted by the window's reports."""

    def __init__(self, values: Sequence[str]) -> None:
        self._places = {value: place for place, value in enumerate(values)}
        self._of_lists: dict[tuple[str, ...], np.ndarray] = {}
        self.reports, self.first, self.share, self.error, self.alike, self.variance = np.zeros(
            (6, len(values))
        )
        self.half = np.zeros((2, len(values)))

    def add(self, window: WindowFigures, place: int) -> None:
        """Add the values of which the window knows an error."""
        known = np.isfinite(window.error)
        at = self._at(window.values)[known]
        reports, error, alike = window.reports, window.error[known], window.alike[known]
        self.first[at] = np.where(self.reports[at] > 0, self.first[at], reports)
        self.reports[at] += reports
        self.share[at] += reports * window.share[known]
        self.error[at] += reports * error
        self.alike[at] += reports * alike
        self.variance[at] += reports**2 * np.maximum(error**2 - alike**2, 0)
        for row, alpha in enumerate(_levels(len(self._places))):
            self.half[row, at] += reports * error * quantiles_of_any(np.array([place]), alpha)

    def _at(self, values: tuple[str, ...]) -> np.ndarray:
        if values not in self._of_lists:
            self._of_lists[values] = np.array([self._places[value] for value in values], np.intp)
        return self._of_lists[values]


def _levels(values: int) -> tuple[float, float]:
    return ALPHA, ALPHA / values
