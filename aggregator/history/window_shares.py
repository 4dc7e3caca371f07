"""The unbiased shares of one final window, or its mean, from which sequences and changes are computed."""

from math import inf
from typing import NamedTuple

import numpy as np

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.share_change import MEAN
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.number import unbiased_mean
from deniable.estimators.mechanisms.square_wave import SquareWave


class WindowShares(NamedTuple):
    """Shares of all values of a collection in one window; of a number, its mean alone.

    Parameters
    ----------
    start : of the window, unix seconds.
    reports : N, >= 1.
    unbiased : float64 array (n,), unconstrained estimates, in the order of the collection's labels; of a
        number (1,), the mean as a fraction of its range.
    std_error : float64 array (n,), > 0, of the noise alone; of a number also of whose numbers are reported.
        inf where nothing is known.
    """

    start: int
    reports: int
    unbiased: FloatArray
    std_error: FloatArray


class FigureUnits(NamedTuple):
    """What the entries of `WindowShares` are: labels, and their fractions 0 and 1 in the units of people.

    Parameters
    ----------
    labels : of the values; of a number `MEAN`.
    lowest, width : the figure of the fraction f is lowest + width * f; 0 and 1 for shares.
    """

    labels: tuple[str, ...]
    lowest: float
    width: float

    def figure(self, fraction: float) -> float:
        """Return a fraction in units."""
        return self.lowest + self.width * fraction

    def shown(self, figure: float) -> float:
        """Return a figure for people, in units: noise may take an unbiased one out of its range."""
        return min(max(figure, self.lowest), self.lowest + self.width)


def units_of(collection: Collection) -> FigureUnits:
    """Return what the entries of a collection's `WindowShares` are."""
    if (number := collection.number) is None:
        return FigureUnits(collection.labels(), 0.0, 1.0)
    return FigureUnits((MEAN,), number.minimum, number.maximum - number.minimum)


def shares_of_counts(collection: Collection, start: int, counts: WindowCounts) -> WindowShares | None:
    """Estimate the shares of a window; None with fewer reports than minimum_reports.

    Raises
    ------
    ValueError, ArithmeticError if no estimate fits the counts.
    """
    if counts.reports < collection.minimum_reports:
        return None
    if (number := collection.number) is not None:
        mean = unbiased_mean(counts.counts[0], number)
        return _of_mean(number, start, counts.reports, *mean)
    result = window_estimate.estimate(collection, counts)
    assert result.unbiased is not None  # noqa: S101 - for mypy: numbers alone lack it
    places = slice(collection.entries)  # the last share of k-RR may be of `other`
    return WindowShares(start, counts.reports, result.unbiased[places], result.std_error[places])


def shares_of_record(collection: Collection, record: EstimateRecord) -> WindowShares | None:
    """Return the shares of a final estimate of the collection with all its values; None for others.

    A list of candidates may change under the same fingerprint: estimates under another list are others.
    """
    mean = record.mean
    if (number := collection.number) is not None:
        if not record.final or mean is None or mean.unbiased is None or mean.unbiased_error is None:
            return None
        return _of_mean(number, record.window_start, record.reports, mean.unbiased, mean.unbiased_error)
    if not record.final or record.omitted or record.parts > 1 or not record.unbiased:
        return None
    if tuple(record.values) != collection.labels():
        return None
    errors = [inf if error is None else error for error in record.std_error]
    return WindowShares(
        record.window_start, record.reports, np.array(record.unbiased), np.array(errors, np.float64)
    )


def _of_mean(mechanism: SquareWave, start: int, reports: int, mean: float, error: float) -> WindowShares:
    """Take a mean and its error, in units of the number."""
    units = mechanism.maximum - mechanism.minimum
    is_known = error > 0  # all reports of one cell say nothing of their spread
    return WindowShares(
        start,
        reports,
        np.array([(mean - mechanism.minimum) / units]),
        np.array([error / units if is_known else inf]),
    )
