"""Shares over all windows of a period, joined across changes of parameters.

Rule 1: counts are added up under the present parameters alone. Of former ones there are estimates of single
windows; their mean, weighted by reports, is what their counts together would give.
Rule 2: means are joined by inverse variance, value by value, where a share means the same.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from deniable.aggregator.history.inverse_variance import join_shares, weights_of
from deniable.aggregator.history.rollup import RollUpRecord
from deniable.aggregator.history.share_sequences import ALPHA
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.history_part import HistoryPart
from deniable.aggregator.views.changed_parameters import difference_of, why_not_comparable
from deniable.aggregator.views.former_estimates import FormerDefinition
from deniable.aggregator.views.so_far_parts import FRESH, Part, part_of_counts, part_of_estimates
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import IntervalEnds
from deniable.estimators.frequency.intervals.confidence_sequence import around, sequence_of_parts
from deniable.estimators.rollup.overlap import RollUp

VALUES = 2000  # of an answer, the largest


class SharesAcrossChanges(msgspec.Struct, frozen=True):
    """Shares of the windows under present and former parameters together; columns of equal length.

    Parameters
    ----------
    parts : former parameters, in the order of time.
    unread : windows under former parameters that no estimate in the topic can be used for: too few reports,
        values left out, or older than the topic keeps.
    failure : why the estimates could not be read; empty if they were.
    since, until, windows, reports : of all that is joined, times in unix seconds.
    repeated_noise : whether windows may have noise of returning clients in common; then intervals hold
        whatever it is, and do not become narrower with the number of windows.
    values : labels of all lists; none unless a former part is joined. `omitted` are left out, the lowest.
    share : means of unbiased estimates, weighted by inverse variance, which may be negative.
    std_error : if every report comes from another client; None where nothing is known.
    shared_std_error : whatever windows have in common.
    low, high : hold each share at every look with 95 %, if no window is `unread`; else at this look.
    low_all, high_all : the same for all shares at once.
    parts_of_value : how many parts, the present one included, list the value.
    p_value, differs : of the test that they have the same share, at a false-discovery rate of 5 %.
    """

    parts: list[HistoryPart]
    unread: int
    failure: str = ""
    since: int = 0
    until: int = 0
    windows: int = 0
    reports: int = 0
    repeated_noise: bool = False
    omitted: int = 0
    values: list[str] = []
    share: list[float] = []
    std_error: list[float | None] = []
    shared_std_error: list[float | None] = []
    low: list[float] = []
    high: list[float] = []
    low_all: list[float] = []
    high_all: list[float] = []
    parts_of_value: list[int] = []
    p_value: list[float] = []
    differs: list[bool] = []


class RollUpAcrossChanges(RollUpRecord, frozen=True):
    """A roll-up, and its shares joined with those under former parameters; null if there are none."""

    joined: SharesAcrossChanges | None = None


def join_so_far(
    collection: Collection, joined: Joined, result: RollUp | None, former: Sequence[FormerDefinition]
) -> SharesAcrossChanges:
    """Join a roll-up with the estimates under former parameters.

    Parameters
    ----------
    collection : of shares, not of a number.
    joined, result : the final windows under the present parameters, and their roll-up, if there is one.
    former : what was estimated in the same period under others.
    """
    parts: list[HistoryPart] = []
    usable: list[FormerDefinition] = []
    for each in former:
        reason = why_not_comparable(each.record, collection) or ("" if each.windows else each.reason)
        parts.append(_former_part(each, collection, reason))
        usable += [] if reason else [each]
    unread = max(0, sum(joined.others.values()) - sum(len(each.windows) for each in former))
    if not usable:
        return SharesAcrossChanges(parts, unread)
    present = joined if result else None
    values, places = _values(collection, usable), _places(usable, present)
    sides = [part_of_estimates(each, values, places[number]) for number, each in enumerate(usable)]
    if result is not None:
        sides.append(part_of_counts(collection, joined, result, values, places[-1]))
    sides.sort(key=lambda each: min(each.windows))
    repeated = collection.mechanism.repeats_noise or any(
        each.record.mechanism not in FRESH for each in usable
    )
    return _record(SharesAcrossChanges(parts, unread, repeated_noise=repeated, values=values), sides)


def _former_part(each: FormerDefinition, collection: Collection, reason: str) -> HistoryPart:
    record, windows = each.record, each.windows
    return HistoryPart(
        fingerprint=record.fingerprint,
        start=min(windows, default=record.window_start),
        end=max((window.end for window in windows.values()), default=record.window_end),
        windows=len(windows),
        reports=sum(window.reports for window in windows.values()),
        mechanism=record.mechanism,
        epsilon=record.epsilon,
        change=difference_of(record, collection),
        not_joined=reason,
    )


def _values(collection: Collection, usable: Sequence[FormerDefinition]) -> list[str]:
    """Labels of the present list, then those of former ones alone."""
    lists = {window.values: None for each in reversed(usable) for window in each.windows.values()}
    return list(dict.fromkeys([*collection.labels(), *(value for each in lists for value in each)]))


def _places(usable: Sequence[FormerDefinition], present: Joined | None) -> list[dict[int, int]]:
    """Place of each window of each part in the order of time, from 1."""
    parts = [*(each.windows for each in usable), *([present.reports] if present else [])]
    order = sorted((start, number) for number, part in enumerate(parts) for start in part)
    found: list[dict[int, int]] = [{} for _ in parts]
    for place, (start, number) in enumerate(order, 1):
        found[number][start] = place
    return found


def _record(found: SharesAcrossChanges, sides: Sequence[Part]) -> SharesAcrossChanges:
    """Fill in the shares; `sides` in the order of their first windows."""
    share, error, shared_error, misfit = (
        np.array([getattr(side, name) for side in sides])
        for name in ("share", "error", "shared_error", "misfit")
    )
    kept = np.flatnonzero(~np.isnan(share).all(axis=0))  # in a window at least with an error
    if not len(kept):
        return msgspec.structs.replace(found, values=[])
    share, error, shared_error, misfit = (each[:, kept] for each in (share, error, shared_error, misfit))
    joined = join_shares(share, error, shared_error, misfit)
    weight = weights_of(share, error)
    ends = []
    for row, alpha in enumerate((ALPHA, ALPHA / len(kept))):
        if found.repeated_noise:
            halves = np.array([side.half[row, kept] for side in sides])
            half = (weight * np.where(weight > 0, halves, 0)).sum(axis=0)
            ends.append(around(joined.share, half))
        else:
            first = _first(weight, np.array([side.first[kept] for side in sides]))
            ends.append(sequence_of_parts(joined.share, joined.std_error, first, alpha))
    columns = {
        "values": np.array(found.values, object)[kept],
        "share": joined.share,
        "std_error": joined.std_error,
        "shared_std_error": joined.shared_std_error,
        **_columns(ends),
        "parts_of_value": joined.parts,
        "p_value": joined.p_value,
        "differs": joined.differs,
    }
    shown = np.sort(np.argsort(-joined.share, kind="stable")[:VALUES])
    lists = {name: _finite(column[shown].tolist()) for name, column in columns.items()}
    return msgspec.structs.replace(
        found,
        since=min(min(side.windows) for side in sides),
        until=max(side.end for side in sides),
        windows=sum(len(side.windows) for side in sides),
        reports=sum(sum(side.windows.values()) for side in sides),
        omitted=len(kept) - len(shown),
        **lists,
    )


def _columns(ends: Sequence[IntervalEnds]) -> dict[str, FloatArray]:
    single, together = ends
    return {"low": single.low, "high": single.high, "low_all": together.low, "high_all": together.high}


def _first(weight: FloatArray, first: FloatArray) -> FloatArray:
    """Return the part of a value's precision that its first window has; parts in the order of time."""
    part = np.argmax(weight > 0, axis=0)[None]
    found: FloatArray = np.take_along_axis(weight * first, part, axis=0)[0]
    return found


def _finite(column: list[object]) -> list[object]:
    return [None if each == float("inf") else each for each in column]
