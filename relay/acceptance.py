"""Which groups of uploads count: a function of the log, and for each window of its own uploads alone. Pure.

Rule 1: a group is accepted or rejected whole, for one reason; groups of one upload do not affect each other.
Rule 2: an upload id counts once in each window, in the upload that brought it first. So the decisions for a
window depend only on uploads that could reach it, and a relay that reads the log from before the first of
them decides as one that read all of it.
Rule 3: of a rejected group only the reason is kept.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.uploads.id_set import IdSet
from deniable.protocol.wire import BUCKET_NUMBERS, bucket_dtype
from deniable.relay.columns import Groups
from deniable.relay.control import Intake
from deniable.relay.intake import EARLY_MS, Intakes
from deniable.relay.windows import OpenWindow, Windows

REASONS = (
    "malformed",
    "unsupported_version",
    "oversized",
    "not_authentic",
    "misrouted",
    "unknown_collection",
    "bad_cohort",
    "too_early",
    "too_late",
    "incomplete",
    "bad_value",
    "duplicate",
    "window_full",
)


@dataclass
class Outcomes:
    """What became of the uploads of a batch.

    Parameters
    ----------
    reports : accepted, by fingerprint and window start.
    rejected : groups by fingerprint, window start and reason; whole uploads that do not decode count as one.
        Fingerprint and window are 0 unless the group is in time for a window of a known collection.
    rejected_reports : reports of these groups, by the same.
    uploads : number of them.
    """

    reports: Counter[tuple[int, int]] = field(default_factory=Counter)
    rejected: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    rejected_reports: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    uploads: int = 0

    def reject(self, reason: str, groups: Groups, window: tuple[int, int] = (0, 0)) -> None:
        """Count rejected groups."""
        if len(groups):
            self.rejected[*window, reason] += len(groups)
            self.rejected_reports[*window, reason] += int(groups.reports.sum())


@dataclass(frozen=True)
class Moment:
    """What the time of a record decides.

    Parameters
    ----------
    append_ms : of the record.
    watermark_ms : the highest append time so far, this record's included.
    whole_after_ms : by fingerprint; windows that start later were read from their first upload on, and all of
        other collections. All unix milliseconds.
    """

    append_ms: int
    watermark_ms: int
    whole_after_ms: Mapping[int, int]


class UploadAcceptance:
    """The checks of one partition.

    Parameters
    ----------
    intakes : terms of the collections, which may change.
    windows : that accepted reports are added to.
    """

    def __init__(self, intakes: Intakes, windows: Windows) -> None:
        self._intakes = intakes
        self._windows = windows

    def accept(self, groups: Groups, moment: Moment, window_uploads: int, outcomes: Outcomes) -> None:
        """Add the groups of one frame to their windows, or reject them.

        Parameters
        ----------
        groups : of the frame.
        moment : of the record.
        window_uploads : ids beyond which a window takes no more.
        outcomes : added to.
        """
        current = self._intakes.current
        known = np.isin(groups.fingerprint, np.fromiter(current, np.uint64, len(current)))
        groups = _without("unknown_collection", ~known, groups, outcomes)
        for fingerprint in np.unique(groups.fingerprint).tolist():
            intake = current[fingerprint]
            found = groups.take(groups.fingerprint == fingerprint) if len(current) > 1 else groups
            for start, part in self._of_collection(found, intake, moment, outcomes):
                self._of_window(part, intake, start, moment, window_uploads, outcomes)

    def _of_collection(
        self, groups: Groups, intake: Intake, moment: Moment, outcomes: Outcomes
    ) -> Iterator[tuple[int, Groups]]:
        """Return the groups of each window that match the collection and are not far out of time."""
        other = (groups.mechanism != intake.mechanism) | (groups.width != intake.width)
        other |= groups.window % intake.window_seconds != 0
        groups = _without("malformed", other, groups, outcomes)
        groups = _without("bad_cohort", groups.cohort >= intake.cohorts, groups, outcomes)
        ahead = groups.window * 1000 > moment.append_ms + EARLY_MS
        groups = _without("too_early", ahead, groups, outcomes)
        past = groups.window * 1000 + self._intakes.longest_ms < moment.watermark_ms
        groups = _without("too_late", past, groups, outcomes)
        for start in np.unique(groups.window).tolist():
            yield start, groups.take(groups.window == start)

    def _of_window(
        self,
        groups: Groups,
        intake: Intake,
        start: int,
        moment: Moment,
        window_uploads: int,
        outcomes: Outcomes,
    ) -> None:
        closes_ms = self._intakes.closes_ms(intake, start)
        if moment.watermark_ms > closes_ms:
            outcomes.reject("too_late", groups)
            return
        if start * 1000 <= moment.whole_after_ms.get(intake.fingerprint, -1):
            outcomes.reject("incomplete", groups)
            return
        key = (intake.fingerprint, start)
        window = self._windows.open.get(key) or OpenWindow(intake, closes_ms)
        rows = groups.rows()
        fits = _fit(groups, rows, intake)
        if not fits.all():
            outcomes.reject("bad_value", groups.take(~fits), key)
            rows, groups = rows[fits.repeat(groups.reports)], groups.take(fits)
        if len(window.ids) >= window_uploads:
            outcomes.reject("window_full", groups, key)
            return
        fresh = _add_fresh(groups, window.ids)
        if not fresh.all():
            outcomes.reject("duplicate", groups.take(~fresh), key)
            rows, groups = rows[fresh.repeat(groups.reports)], groups.take(fresh)
        if len(groups):
            outcomes.reports[key] += len(rows)
            window.add(groups.cohort.repeat(groups.reports), rows)
            self._windows.open[key] = window


def _without(reason: str, wrong: NDArray[np.bool_], groups: Groups, outcomes: Outcomes) -> Groups:
    if not wrong.any():
        return groups
    outcomes.reject(reason, groups.take(wrong))
    return groups.take(~wrong)


def _fit(groups: Groups, rows: NDArray[np.uint8], intake: Intake) -> NDArray[np.bool_]:
    """Whether all reports of each group have a counter, bool (m,): buckets below k; rows of bits always."""
    dtype = bucket_dtype(intake.width)
    if intake.mechanism not in BUCKET_NUMBERS or intake.width > np.iinfo(dtype).max or not len(groups):
        return np.ones(len(groups), np.bool_)
    fits = rows.view(dtype).reshape(-1) < intake.width
    firsts = groups.reports.cumsum() - groups.reports
    return np.logical_and.reduceat(fits, firsts)


def _add_fresh(groups: Groups, ids: IdSet) -> NDArray[np.bool_]:
    """Whether each group is in the first upload with its id, bool (m,); the new ids are added."""
    if not len(groups):
        return np.ones(0, np.bool_)
    order = np.lexsort((groups.upload, groups.high, groups.low))
    low, high, upload = groups.low[order], groups.high[order], groups.upload[order]
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    firsts = np.flatnonzero(is_first)
    held = ids.holds(low[firsts], high[firsts])
    ids.add(low[firsts[~held]], high[firsts[~held]])
    number = is_first.cumsum() - 1
    fresh = np.empty(len(order), np.bool_)
    fresh[order] = (upload == upload[firsts][number]) & ~held[number]
    return fresh
