"""The newest estimate of each recent window, followed from the topic `estimates`.

Rule 1: memory is bounded by windows and bytes per collection of the worker's file; other collections are
skipped.
Rule 2: both name and fingerprint must match. An estimate of the same name under other parameters is never
the newest one. It is kept for the points of the history alone, which mark the change.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from deniable.aggregator.records.estimate import EstimateRecord, decode_estimate, encode_estimate
from deniable.aggregator.views.changed_parameters import difference_of, joined, why_not_comparable
from deniable.aggregator.views.latest_estimates import LatestEstimates
from deniable.estimators.collection import Collection

WINDOWS = 60
BYTES = 8 * 2**20  # of a collection's records; the newest is always kept
VALUES = 20  # largest per window; the page draws those that lead now


class _Known(NamedTuple):
    """An estimate's JSON, and what decides whether another supersedes it."""

    revision: int
    final: bool
    data: bytes


class EstimateHistory(LatestEstimates):
    """Latest estimates that keep older windows of the known collections too.

    Parameters
    ----------
    collections : to keep.
    """

    def __init__(self, collections: Iterable[Collection]) -> None:
        super().__init__()
        names = {f"{collection.fingerprint:016x}": collection.name for collection in collections}
        self.sought = set(names.values())
        self._names = names
        self._windows: dict[str, dict[int, _Known]] = {fingerprint: {} for fingerprint in names}
        self._others: dict[str, dict[int, _Known]] = {name: {} for name in names.values()}

    def take_estimate(self, record: EstimateRecord) -> EstimateRecord | None:
        """Add one estimate; return it if it is its window's newest, and the window is kept."""
        if record.fingerprint not in self._names:
            windows = self._others.get(record.collection)
            return record if windows is not None and _keep(windows, record) else None
        if self._names[record.fingerprint] != record.collection:
            return None
        is_kept = _keep(self._windows[record.fingerprint], record)
        if is_kept is None:
            return None
        super().take_estimate(record)
        return record if is_kept else None

    def starts(self, collection: Collection) -> list[int]:
        """Starts of the kept windows, unix seconds, ascending."""
        return sorted(self._windows[f"{collection.fingerprint:016x}"])

    def record(self, collection: Collection, window_start: int | None = None) -> bytes | None:
        """JSON of a window's newest estimate, by default the newest window's; None if there is none."""
        windows = self._windows[f"{collection.fingerprint:016x}"]
        known = windows.get(max(windows, default=0) if window_start is None else window_start)
        return None if known is None else known.data

    def points(self, collection: Collection) -> list[int]:
        """Starts of the windows of the history, unix seconds, ascending: those under other parameters too."""
        starts = {*self._windows[f"{collection.fingerprint:016x}"], *self._others[collection.name]}
        return sorted(starts)[-WINDOWS:]

    def point(self, collection: Collection, record: EstimateRecord) -> dict[str, object]:
        """One window's point in the history; of both parameters, joined if they are comparable.

        Parameters
        ----------
        collection : of the worker's file.
        record : the window's newest estimate under its parameters.
        """
        own = self._windows[f"{collection.fingerprint:016x}"].get(record.window_start)
        known = self._others[collection.name].get(record.window_start)
        if known is None:
            return point_of(record)
        other = decode_estimate(known.data)
        reason = why_not_comparable(other, collection)
        if own is not None:
            present = decode_estimate(own.data)
            return point_of(present if reason else joined(present, other, frozenset(collection.labels())))
        return point_of(other) | {
            "other_parameters": {
                "fingerprint": other.fingerprint,
                "difference": difference_of(other, collection),
                "not_comparable": reason,
            }
        }


def _keep(windows: dict[int, _Known], record: EstimateRecord) -> bool | None:
    """Keep an estimate; False if its window is too old, None if a newer one of it is known."""
    known = windows.get(record.window_start)
    if known is not None and (known.revision, known.final) > (record.revision, record.final):
        return None
    windows[record.window_start] = _Known(record.revision, record.final, encode_estimate(record))
    _forget_oldest(windows)
    return record.window_start in windows


def _forget_oldest(windows: dict[int, _Known]) -> None:
    held = sum(len(known.data) for known in windows.values())
    while len(windows) > WINDOWS or (held > BYTES and len(windows) > 1):
        held -= len(windows.pop(min(windows)).data)


def point_of(record: EstimateRecord) -> dict[str, object]:
    """One window's point in the history: its largest values, in columns of equal length.

    `other_parameters` is None, or says what differs from the worker's file, and why it is not comparable.
    """
    shown = np.argsort(-np.asarray(record.frequency), kind="stable")[:VALUES].tolist()
    return {
        "collection": record.collection,
        "window_start": record.window_start,
        "window_end": record.window_end,
        "final": record.final,
        "reports": record.reports,
        "values": [record.values[i] for i in shown],
        "frequency": [record.frequency[i] for i in shown],
        "low": [record.low[i] for i in shown],
        "high": [record.high[i] for i in shown],
        "other_parameters": None,
    }
