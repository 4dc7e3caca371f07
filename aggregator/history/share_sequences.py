"""Confidence sequences of a collection's shares over its final windows, as one record for programs."""

from collections.abc import Sequence

import msgspec
import numpy as np

from aggregator.history.window_shares import WindowShares, repeats_noise
from aggregator.records.estimate import EstimateRecord
from estimators.collection import Collection
from estimators.frequency.intervals.confidence_sequence import (
    mean_over_windows,
    sequence_of_any,
    sequence_of_independent,
    sequence_of_totals,
)

ALPHA = 0.05


class ShareSequence(msgspec.Struct, frozen=True):
    """The shares among all reports so far, with intervals that hold at every look.

    Parameters
    ----------
    since, until : start of the first window and end of the last, unix seconds.
    windows, reports : how many there are.
    repeated_noise : whether clients may return with the same permanent noise: then intervals hold whatever
        the windows have in common, and do not become narrower with their number.
    values : labels, all of them unless it is of a record that omits some.
    share : unconstrained mean over windows, weighted by reports, fractions.
    low, high : hold each share at every look with 95 %.
    low_all, high_all : hold all shares at every look with 95 %.
    """

    since: int
    until: int
    windows: int
    reports: int
    repeated_noise: bool
    values: list[str]
    share: list[float]
    low: list[float]
    high: list[float]
    low_all: list[float]
    high_all: list[float]


def sequence_at(collection: Collection, windows: Sequence[WindowShares]) -> ShareSequence:
    """Return the confidence sequence after the last of these windows.

    Parameters
    ----------
    collection : of the windows, not of a number.
    windows : at least 1, in the order of time. It holds at every look for a fixed first window.
    """
    unbiased = np.array([each.unbiased for each in windows])
    errors = np.array([each.std_error for each in windows])
    reports = np.array([each.reports for each in windows], np.float64)
    repeated = repeats_noise(collection)
    sequence = sequence_of_any if repeated else sequence_of_independent
    low, high = (ends[-1] for ends in sequence(unbiased, errors, reports, ALPHA))
    together = sequence(unbiased, errors, reports, ALPHA / unbiased.shape[1])
    return ShareSequence(
        since=windows[0].start,
        until=windows[-1].start + collection.window_seconds,
        windows=len(windows),
        reports=int(reports.sum()),
        repeated_noise=repeated,
        values=list(collection.labels()),
        share=mean_over_windows(unbiased, reports)[-1].tolist(),
        low=low.tolist(),
        high=high.tolist(),
        low_all=together.low[-1].tolist(),
        high_all=together.high[-1].tolist(),
    )


def sequence_of_record(
    collection: Collection, record: EstimateRecord, reports: Sequence[int]
) -> ShareSequence | None:
    """Return the confidence sequence of a roll-up; None for a number.

    Parameters
    ----------
    collection : of the record.
    record : of all windows together, for independent reports.
    reports : of each window, >= 1, in the order of time.
    """
    if not record.unbiased:
        return None
    unbiased = np.array(record.unbiased)
    errors = np.array([np.inf if error is None else error for error in record.std_error])
    windows = np.array([each for each in reports if each], np.float64)
    repeated, values = repeats_noise(collection), len(record.values) + record.omitted
    low, high = sequence_of_totals(unbiased, errors, windows, ALPHA, repeated=repeated)
    together = sequence_of_totals(unbiased, errors, windows, ALPHA / values, repeated=repeated)
    return ShareSequence(
        since=record.window_start,
        until=record.window_end,
        windows=len(windows),
        reports=int(windows.sum()),
        repeated_noise=repeated,
        values=record.values,
        share=record.unbiased,
        low=low.tolist(),
        high=high.tolist(),
        low_all=together.low.tolist(),
        high_all=together.high.tolist(),
    )
