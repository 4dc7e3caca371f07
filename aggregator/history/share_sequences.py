"""Confidence sequences of shares over final windows, or of a number's mean, as one record for programs.

Rule: the sequence of a mean holds that of the numbers reported, each at the middle of its step. Its errors
are of noise alone, like those of shares, and the largest that the mechanism has for any numbers. An estimate
of them would be too small where a window has few reports and none of the rare ones far from its number.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from deniable.aggregator.history.window_shares import (
    FigureUnits,
    WindowShares,
    shares_of_record,
    units_of,
)
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.confidence_sequence import (
    ALL_LOOKS,
    NORMAL,
    ReportSteps,
    mean_over_windows,
    sequence_of_any,
    sequence_of_independent,
    sequence_of_totals,
)
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.mechanism import pool_of
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.traits import ValueBits

ALPHA = 0.05


class ShareSequence(msgspec.Struct, frozen=True):
    """The shares among all reports so far, or the mean of their numbers; intervals hold at every look.

    Parameters
    ----------
    since, until : start of the first window and end of the last, unix seconds.
    windows, reports : how many there are.
    repeated_noise : whether windows may have errors in common: noise or levels of returning clients, or
        collisions of hash functions. Then intervals hold whatever it is, and do not become narrower with the
        number of windows.
    values : labels, all of them unless it is of a record that omits some; of a number `MEAN` alone.
    share : unconstrained mean over windows, weighted by reports, fractions; of a number in its units, like
        all ends.
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


def ends_at_every_look(
    collection: Collection, windows: Sequence[WindowShares], alpha: float, looks: slice = ALL_LOOKS
) -> IntervalEnds:
    """Return the confidence sequence of each share after each window, or of the mean as a fraction.

    Parameters
    ----------
    collection : of the windows.
    windows : at least 1, in the order of time, of n values each.
    alpha : probability that a true share is ever missed, in (0, 1).
    looks : after which windows ends are returned, all of them unless given.

    Returns
    -------
    IntervalEnds of shape (looks, n), within [0, 1].
    """
    unbiased = np.array([each.unbiased for each in windows])
    errors = np.array([each.std_error for each in windows])
    reports = np.array([each.reports for each in windows], np.float64)
    if (number := collection.number) is not None:
        errors = number.most_noise / np.sqrt(reports[:, None])
    sequence = sequence_of_any if _errs_alike(collection) else sequence_of_independent
    return sequence(unbiased, errors, reports, alpha, report_steps(collection), looks)


def report_steps(collection: Collection) -> ReportSteps:
    """Return what one report does to a share, or to the mean, for sequences.

    Bloom RAPPOR's shares are decoded from many unequal bits, so what one report adds is not known: there
    errors are taken to be normal. The variance is linear in the share where a value is counted by itself.
    """
    mechanism = collection.mechanism
    match mechanism:
        case Rappor():
            return NORMAL
        case FunctionPool() | ValueBits() | KRR() | LongitudinalKRR():
            slope = Inversion.of_mechanism(mechanism).slope
        case _:
            slope = 0.0
    return ReportSteps(collection.mechanism.max_step, slope)


def sequence_at(collection: Collection, windows: Sequence[WindowShares]) -> ShareSequence:
    """Return the confidence sequence after the last of these windows.

    Parameters
    ----------
    collection : of the windows.
    windows : at least 1, in the order of time. It holds at every look for a fixed first window.
    """
    units = units_of(collection)
    unbiased = np.array([each.unbiased for each in windows])
    reports = np.array([each.reports for each in windows], np.float64)
    each, every = (
        ends_at_every_look(collection, windows, level, slice(-1, None))
        for level in (ALPHA, ALPHA / len(units.labels))
    )
    return _sequence(
        units,
        mean_over_windows(unbiased, reports)[-1],
        IntervalEnds(each.low[-1], each.high[-1]),
        IntervalEnds(every.low[-1], every.high[-1]),
        span=(windows[0].start, windows[-1].start + collection.window_seconds),
        reports=reports,
        repeated_noise=_errs_alike(collection),
    )


def sequence_of_record(
    collection: Collection, record: EstimateRecord, reports: Sequence[int]
) -> ShareSequence | None:
    """Return the confidence sequence of a roll-up; None for a record of a version before `unbiased`.

    Parameters
    ----------
    collection : of the record.
    record : of all windows together, for independent reports.
    reports : of each window, >= 1, in the order of time.
    """
    units, values = units_of(collection), len(record.values) + record.omitted
    if (number := collection.number) is not None:
        mean = shares_of_record(collection, record)
        if mean is None:
            return None
        unbiased, values = mean.unbiased, 1
        errors = np.array([number.most_noise / math.sqrt(mean.reports)])
    elif record.unbiased:
        unbiased = np.array(record.unbiased)
        errors = np.array([np.inf if error is None else error for error in record.std_error])
        units = units._replace(labels=tuple(record.values))
    else:
        return None
    windows = np.array([each for each in reports if each], np.float64)
    repeated = collection.mechanism.repeats_noise
    each, every = (
        sequence_of_totals(unbiased, errors, windows, level, report_steps(collection), repeated=repeated)
        for level in (ALPHA, ALPHA / values)
    )
    return _sequence(
        units,
        unbiased,
        each,
        every,
        span=(record.window_start, record.window_end),
        reports=windows,
        repeated_noise=repeated,
    )


def _errs_alike(collection: Collection) -> bool:
    """Whether windows may have errors in common: values collide in every window alike.

    The error of all counts together, as a roll-up has it, has that part whole.
    """
    return collection.mechanism.repeats_noise or pool_of(collection.mechanism) is not None


def _sequence(
    units: FigureUnits,
    share: FloatArray,
    each: IntervalEnds,
    every: IntervalEnds,
    *,
    span: tuple[int, int],
    reports: FloatArray,
    repeated_noise: bool,
) -> ShareSequence:
    """Return the record, in units; `each` and `every` are the ends of each value and of all at once."""

    def figures(column: FloatArray) -> list[float]:
        return [units.figure(fraction) for fraction in column.tolist()]

    return ShareSequence(
        since=span[0],
        until=span[1],
        windows=len(reports),
        reports=int(reports.sum()),
        repeated_noise=repeated_noise,
        values=list(units.labels),
        share=figures(share),
        low=figures(each.low),
        high=figures(each.high),
        low_all=figures(every.low),
        high_all=figures(every.high),
    )
