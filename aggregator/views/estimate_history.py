"""The newest estimate of each of the last windows, followed from the topic `estimates`.

Rule 1: memory is bounded by windows and by bytes of each collection that the worker's file holds; what is
published of others is passed over.
Rule 2: an estimate under other parameters of the same name is another collection's; one under our parameters
and another name is none of ours.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from aggregator.records.estimate import EstimateRecord, encode_estimate
from aggregator.views.latest_estimates import LatestEstimates
from estimators.collection import Collection

WINDOWS = 60
BYTES = 8 * 2**20  # of a collection's records; the newest is always kept
VALUES = 20  # the highest of each window, of which the page draws those that lead now


class _Known(NamedTuple):
    """What is kept of an estimate: enough to tell whether another one supersedes it, and its JSON."""

    revision: int
    final: bool
    data: bytes


class EstimateHistory(LatestEstimates):
    """A board that keeps older windows too, of the known collections.

    Parameters
    ----------
    collections : the known ones.
    """

    def __init__(self, collections: Iterable[Collection]) -> None:
        super().__init__()
        names = {f"{collection.fingerprint:016x}": collection.name for collection in collections}
        self.sought = set(names.values())
        self._names = names
        self._windows: dict[str, dict[int, _Known]] = {fingerprint: {} for fingerprint in names}

    def take_estimate(self, record: EstimateRecord) -> EstimateRecord | None:
        """Take in one estimate; itself if it is its window's newest one, and the window is kept."""
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
        """Starts of the windows that are kept, unix seconds, ascending."""
        return sorted(self._windows[f"{collection.fingerprint:016x}"])

    def record(self, collection: Collection, window_start: int | None = None) -> bytes | None:
        """JSON of the newest estimate of a window, by default of the newest one; None when there is none."""
        windows = self._windows[f"{collection.fingerprint:016x}"]
        known = windows.get(max(windows, default=0) if window_start is None else window_start)
        return None if known is None else known.data


def _forget_oldest(windows: dict[int, _Known]) -> None:
    held = sum(len(known.data) for known in windows.values())
    while len(windows) > WINDOWS or (held > BYTES and len(windows) > 1):
        held -= len(windows.pop(min(windows)).data)


def point_of(record: EstimateRecord) -> dict[str, object]:
    """What the history of one window shows: the values estimated highest, in columns of equal length."""
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
