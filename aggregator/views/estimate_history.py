"""The newest estimate of each recent window, followed from the topic `estimates`.

Rule 1: memory is bounded by windows and bytes per collection of the worker's file; other collections are
skipped.
Rule 2: both name and fingerprint must match. An estimate of the same name under other parameters is skipped.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from aggregator.records.estimate import EstimateRecord, encode_estimate
from aggregator.views.latest_estimates import LatestEstimates
from estimators.collection import Collection

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

    def take_estimate(self, record: EstimateRecord) -> EstimateRecord | None:
        """Add one estimate; return it if it is its window's newest, and the window is kept."""
        if self._names.get(record.fingerprint) != record.collection:
            return None
        windows = self._windows[record.fingerprint]
        known = windows.get(record.window_start)
        if known is not None and (known.revision, known.final) > (record.revision, record.final):
            return None
        data = encode_estimate(record)
        windows[record.window_start] = _Known(record.revision, record.final, data)
        _forget_oldest(windows)
        super().take_estimate(record)
        return record if record.window_start in windows else None

    def starts(self, collection: Collection) -> list[int]:
        """Starts of the kept windows, unix seconds, ascending."""
        return sorted(self._windows[f"{collection.fingerprint:016x}"])

    def record(self, collection: Collection, window_start: int | None = None) -> bytes | None:
        """JSON of a window's newest estimate, by default the newest window's; None if there is none."""
        windows = self._windows[f"{collection.fingerprint:016x}"]
        known = windows.get(max(windows, default=0) if window_start is None else window_start)
        return None if known is None else known.data


def _forget_oldest(windows: dict[int, _Known]) -> None:
    held = sum(len(known.data) for known in windows.values())
    while len(windows) > WINDOWS or (held > BYTES and len(windows) > 1):
        held -= len(windows.pop(min(windows)).data)


def point_of(record: EstimateRecord) -> dict[str, object]:
    """One window's point in the history: its largest values, in columns of equal length."""
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
    }
