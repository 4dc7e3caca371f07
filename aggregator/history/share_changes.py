"""Finds changes of shares from final windows, at a stated rate of false alarms per year.

Rule 1: time is divided into epochs of EPOCH_WINDOWS windows from 1970 on. A detector begins with each
epoch; in the next one, its alarms count. So every alarm is a function of the final windows since the start
of the epoch before, whatever was read earlier: it is the same after a restart, and in every worker.
Rule 2: each detector runs for two epochs, and its alarms of one count. So half of the rate is allowed to
each.
Rule 3: a window that is revised is run again, with all after it.
"""

from collections.abc import Iterable

from aggregator.history.window_shares import WindowShares, most_step
from aggregator.records.share_change import CHANGE_ALARMS_A_YEAR, ShareChange
from estimators.canary_fit import YEAR_SECONDS
from estimators.collection import Collection
from estimators.detectors.share_changes import ShareChangeDetector

EPOCH_WINDOWS = 500


class _Run:
    """One detector: it begins with an epoch and ends with the next."""

    def __init__(self, collection: Collection, epoch: int, rate: float) -> None:
        windows_a_year = YEAR_SECONDS / collection.window_seconds
        self._collection = collection
        self._detector = ShareChangeDetector(collection.entries, 2 * windows_a_year / rate)
        self._step = most_step(collection)
        self.epoch = epoch
        self.done = -1  # number of the last window
        self.changes: list[ShareChange] = []

    def add(self, window: WindowShares) -> None:
        seconds = self._collection.window_seconds
        number = window.start // seconds
        found = self._detector.add(number, window.reports, window.unbiased, window.std_error, self._step)
        self.done = number
        if number // EPOCH_WINDOWS == self.epoch:
            return  # the detector before is in charge
        labels = self._collection.labels()
        self.changes += [
            ShareChange(
                value=labels[each.value],
                since=each.since * seconds,
                found=window.start + seconds,
                before=each.before,
                after=each.after,
                change=each.after - each.before,
                low=each.low,
                high=each.high,
            )
            for each in found
        ]


def period_needed(collection: Collection, start: int) -> int:
    """Return the start of the first window, unix seconds, that decides on alarms from `start` on."""
    seconds = collection.window_seconds * EPOCH_WINDOWS
    return max(0, (start // seconds - 1) * seconds)


class ChangeMonitor:
    """The changes of one collection, from its final windows in any order.

    Parameters
    ----------
    collection : not of a number.
    rate : false alarms per year, at most, while no share changes, > 0.
    epochs : number of the newest epochs of which windows are kept, >= 2, with the alarms of all of them but
        the first; None for all.
    """

    def __init__(
        self, collection: Collection, rate: float = CHANGE_ALARMS_A_YEAR, epochs: int | None = 3
    ) -> None:
        self._collection = collection
        self._rate = rate
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

    def _run(self, epoch: int, numbers: Iterable[int]) -> None:
        span = range(epoch * EPOCH_WINDOWS, (epoch + 2) * EPOCH_WINDOWS)
        run = self._runs.setdefault(epoch, _Run(self._collection, epoch, self._rate))
        for number in numbers:
            if number in span and number > run.done:
                run.add(self._windows[number])
