"""Finds changes of shares, or of a mean, from final windows, at a stated rate of false alarms per year.

Rule 1: time is divided into epochs of EPOCH_WINDOWS windows from 1970 on. A detector begins with each
epoch; in the next one, its alarms count. So every alarm is a function of the final windows since the start
of the epoch before, whatever was read earlier: it is the same after a restart, and in every worker.
Rule 2: each detector runs for two epochs, and its alarms of one count. So half of the rate is allowed to
each.
Rule 3: a run goes on after its end until the changes found in it are stated; its later alarms do not count.
Rule 4: a window that is revised is run again, with all after it.
"""

from collections.abc import Iterable
from math import isfinite

from deniable.aggregator.history.window_shares import WindowShares, units_of
from deniable.aggregator.records.share_change import ShareChange
from deniable.estimators.canary_fit import YEAR_SECONDS
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.share_changes import DetectedChange, ShareChangeDetector

EPOCH_WINDOWS = 500


class _Run:
    """One detector: it begins with an epoch and ends with the next."""

    def __init__(self, collection: Collection, epoch: int, rate: float) -> None:
        windows_a_year = YEAR_SECONDS / collection.window_seconds
        self._collection = collection
        self._units = units_of(collection)
        self._detector = ShareChangeDetector(
            len(self._units.labels),
            2 * windows_a_year / rate,
            knows_spread=collection.number is not None,
        )
        self._step = collection.mechanism.max_step
        self.epoch = epoch
        self.done = -1  # number of the last window
        self._changes: dict[tuple[int, int], ShareChange] = {}  # by value and window of the alarm

    def add(self, window: WindowShares) -> None:
        number = window.start // self._collection.window_seconds
        found = self._detector.add(number, window.reports, window.unbiased, window.std_error, self._step)
        self.done = number
        for each in found:
            if (
                each.found // EPOCH_WINDOWS == self.epoch + 1
            ):  # in the first, the detector before is in charge
                self._changes[each.value, each.found] = self._in_units(each)

    @property
    def changes(self) -> list[ShareChange]:
        """Changes whose alarms count, as the newest window that says something of them states them."""
        return list(self._changes.values())

    @property
    def is_settled(self) -> bool:
        """Whether no change waits for the next window."""
        return self._detector.is_settled

    def _in_units(self, each: DetectedChange) -> ShareChange:
        units, seconds = self._units, self._collection.window_seconds
        return ShareChange(
            value=units.labels[each.value],
            since=each.since * seconds,
            found=(each.found + 1) * seconds,
            before=units.figure(each.before),
            after=units.figure(each.after),
            change=units.width * (each.after - each.before),
            low=units.width * each.low,
            high=units.width * each.high,
            partial=each.is_partial,
        )


def period_needed(collection: Collection, start: int) -> int:
    """Return the start of the first window, unix seconds, that decides on alarms from `start` on."""
    seconds = collection.window_seconds * EPOCH_WINDOWS
    return max(0, (start // seconds - 1) * seconds)


class ChangeMonitor:
    """The changes of one collection, from its final windows in any order.

    Parameters
    ----------
    collection : any with values, or of a number.
    rate : false alarms per year, at most, while no share changes, > 0; None for that of the collection.
    epochs : number of the newest epochs of which windows are kept, >= 2, with the alarms of all of them but
        the first; None for all.
    """

    def __init__(self, collection: Collection, rate: float | None = None, epochs: int | None = 3) -> None:
        self._collection = collection
        self._rate = collection.change_alarms_a_year if rate is None else rate
        self._epochs = epochs
        self._windows: dict[int, WindowShares] = {}
        self._runs: dict[int, _Run] = {}

    def add(self, window: WindowShares) -> None:
        """Add a window, or replace one; `update` looks at it."""
        number = window.start // self._collection.window_seconds
        self._windows[number] = window
        self._runs = {epoch: run for epoch, run in self._runs.items() if run.done < number}

    def update(self) -> list[ShareChange]:
        """Run the detectors over the windows that they lack; return all changes by time."""
        numbers = sorted(self._windows)
        if not numbers:
            return []
        newest = numbers[-1] // EPOCH_WINDOWS
        first = numbers[0] // EPOCH_WINDOWS
        begins = first - 1 if self._epochs is None else newest - self._epochs + 1
        self._windows = {
            number: self._windows[number] for number in numbers if number >= begins * EPOCH_WINDOWS
        }
        self._runs = {epoch: run for epoch, run in self._runs.items() if epoch >= begins}
        for epoch in range(begins, newest + 1):
            self._run(epoch, self._windows)
        changes = [change for run in self._runs.values() for change in run.changes]
        return sorted(changes, key=lambda each: (each.found, each.value))

    def newest(self) -> dict[str, float]:
        """Return the unbiased figures of the newest window by label, in units, where they are known."""
        if not self._windows:
            return {}
        window, units = self._windows[max(self._windows)], units_of(self._collection)
        return {
            label: units.figure(share)
            for label, share, error in zip(
                units.labels, window.unbiased.tolist(), window.std_error.tolist(), strict=True
            )
            if isfinite(error)
        }

    def _run(self, epoch: int, numbers: Iterable[int]) -> None:
        span = range(epoch * EPOCH_WINDOWS, (epoch + 2) * EPOCH_WINDOWS)
        run = self._runs.setdefault(epoch, _Run(self._collection, epoch, self._rate))
        for number in numbers:
            if number > run.done and (number in span or (number >= span.stop and not run.is_settled)):
                run.add(self._windows[number])
