"""Detects that a share, or a mean, changed, at a stated rate of false alarms, from window to window.

Let x(t) be the unconstrained estimate of a share in window t, of N(t) reports, and m the mean of the
windows before, of W reports. While the share of the population stays the same, whatever it is, d = x(t) - m
has mean 0 and the variance v = r (1 / N(t) + 1 / W), where r is that of one report: its noise, and whose
report it is.

Rule 1: evidence of a change by a at window j. From window j on, m lags: d has the mean a g with g = W(j) / W,
where W(j) are the reports before j. With mu = |a| g, the factor of a window is

    exp(eta (d - mu / 2)),  eta = mu / (v + c mu),

of a fall with -d. Without a change, the d of normal estimates are independent of each other (recursive
residuals), and the mean of each factor is at most 1, so the product of the factors since j is an e-process.
Counts of rare values are skewed. So c is a third of the most that one report adds to d: then Bernstein's
inequality, ln E exp(eta d) <= eta² v / (2 (1 - eta c)) = eta mu / 2, bounds the mean of a factor for sums of
any reports. The sizes a of a start are known before its window: they follow from the reports of the last one,
since reports grow in a rollout, and differ between day and night.

Rule 2: R is the sum, over all starts j, of the mean e-process of several a. R(t) - t is a supermartingale
without a change, so the mean time until R reaches a threshold A is at least A windows (Shiryaev and
Roberts). Leaving out starts only lowers R. With the threshold n A for each of n values, the sum of all R is
below n A before the first alarm, so the mean time to any alarm is at least A windows, too, whatever values
have in common.

The mean of a number is watched like a share. Its variance is measured, and the spread of numbers may change
while their mean does not, so r is that of the window if it is larger than the mean of all.

Rule 3: after an alarm the value begins again with the next window. Nothing before it is used for alarms.

Rule 4: a change may begin inside a window, whose share is then a mixture. So the first window since is left
out of the share after it. If the alarm is in that window, the next one states the share: it is no evidence,
and unless its own interval has a change of the same sign, which a single odd window lacks, the change stays
as it was. Alarms do not depend on it.

Source: Shin, Ramdas, Rinaldo, "E-detectors" (New England Journal of Statistics in Data Science 2, 2024),
theorem 2.2 and section 4; Robbins, Siegmund (1974) for unknown shares before the change.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.intervals.acceptance import LEVEL, quantile_of

#: Sizes of change that a start gathers evidence for, in standard errors of the window before it, up and down.
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
#: Starts kept: all of the last ones, and half as many of each range twice as old.
RECENT_STARTS = 16


@dataclass(frozen=True)
class DetectedChange:
    """A share that changed.

    Parameters
    ----------
    value : place of the value, from 0.
    since : first window after the change that explains the estimates best, by the number given to `add`.
    found : window of the alarm, by its number.
    before, after : mean shares of the windows before and after that one, unbiased, fractions.
    low, high : interval of after - before, within [-1, 1], with 95 % for all starts that were compared at
        once.
    is_partial : whether `after` is the share of the window `since` alone, which may hold a part of the
        change; the next window may state it anew.
    """

    value: int
    since: int
    found: int
    before: float
    after: float
    low: float
    high: float
    is_partial: bool = False


@dataclass(frozen=True)
class _Partial:
    """A change that the next window states.

    Parameters
    ----------
    said : by the window of its alarm.
    quantile : of the starts compared.
    variance : of the share before.
    """

    said: DetectedChange
    quantile: float
    variance: float

    def stated(self, after: float, variance: float) -> DetectedChange:
        """Return the change as the next window's share and its variance say, or as it was."""
        change, half = after - self.said.before, self.quantile * float(np.sqrt(self.variance + variance))
        if change * (self.said.after - self.said.before) <= 0 or abs(change) <= half:
            return replace(self.said, is_partial=False)
        low, high = _difference_interval(change, half)
        return replace(self.said, after=after, low=low, high=high, is_partial=False)


class ShareChangeDetector:
    """Watches the shares of n values.

    Parameters
    ----------
    values : n, >= 1.
    windows_between : mean number of windows to the first false alarm, at least, > 0.
    knows_spread : whether errors are also of whose reports they are; else that of a share is added.
    """

    def __init__(self, values: int, windows_between: float, *, knows_spread: bool = False) -> None:
        self._knows_spread = knows_spread
        self._threshold = values * windows_between
        self._error = np.zeros(values)  # of the last window
        self._reports, self._sum, self._noise = np.zeros((3, values))  # since the last alarm of each value
        self._starts: list[int] = []
        self._before = np.zeros((2, 0, values))  # reports and sums before each start
        self._sizes = np.zeros((0, len(SIZES), values))  # of each start
        self._logs = np.zeros((0, 2 * len(SIZES), values))  # log of each e-process
        self._partial: dict[int, _Partial] = {}  # by value

    @property
    def is_settled(self) -> bool:
        """Whether no change waits for the next window."""
        return not self._partial

    def add(
        self, window: int, reports: int, unbiased: FloatArray, std_error: FloatArray, step: float
    ) -> list[DetectedChange]:
        """Add the next window; return former changes that it states anew, and those found with it.

        Parameters
        ----------
        window : its number, above those before; gaps are allowed.
        reports : N of the window, >= 1.
        unbiased, std_error : float64 arrays (n,), fractions; a window with an error of inf is left out for
            the value.
        step : N times the most that one report adds to an estimate, >= 0.
        """
        known = np.isfinite(std_error)
        stated = self._state(known, reports, unbiased, std_error)
        watched = known & (self._reports > 0)
        self._keep_starts(window)
        noise = np.where(known, (reports * std_error) ** 2, 0)
        new_reports = self._reports + reports * known
        new_sum = self._sum + reports * np.where(known, unbiased, 0)
        per_report = (self._noise + noise) / np.maximum(new_reports, 1)
        if self._knows_spread:
            per_report = np.maximum(per_report, noise / reports)
        else:
            per_report += _spread(new_sum / np.maximum(new_reports, 1))
        if watched.any():
            before = np.maximum(self._reports, 1)
            difference = np.where(known, unbiased, 0) - self._sum / before
            variance = np.where(watched, per_report * (1 / reports + 1 / before), 1)
            lag = self._before[0] / before
            most = step / np.minimum(reports, before) / 3
            logs = _log_factors(self._sizes, lag, difference, variance, most)
            self._logs[:, :, watched] += logs[:, :, watched]
        self._reports, self._sum, self._noise = new_reports, new_sum, self._noise + noise
        self._error = np.where(known, np.sqrt(per_report / reports), self._error)
        with np.errstate(over="ignore"):
            evidence = np.exp(self._logs).mean(axis=1).sum(axis=0)
        alarms = np.flatnonzero(evidence >= self._threshold).tolist()
        return stated + [self._found(value, window, float(per_report[value])) for value in alarms]

    def _state(
        self, known: NDArray[np.bool_], reports: int, unbiased: FloatArray, std_error: FloatArray
    ) -> list[DetectedChange]:
        """State the changes that wait for this window."""
        values = [value for value in self._partial if known[value]]
        spread = np.zeros(len(unbiased)) if self._knows_spread else _spread(unbiased)
        variance = std_error**2 + spread / reports
        return [
            self._partial.pop(value).stated(float(unbiased[value]), float(variance[value]))
            for value in values
        ]

    def _keep_starts(self, window: int) -> None:
        """Add this window as a start for values that have a window before it, and drop old starts."""
        self._starts.append(window)
        row = np.stack([self._reports, self._sum])[:, None]
        self._before = np.concatenate([self._before, row], axis=1)
        begun = np.where(self._reports > 0, 0.0, -np.inf)
        logs = np.broadcast_to(begun, (1, *self._logs.shape[1:]))
        self._logs = np.concatenate([self._logs, logs])
        self._sizes = np.concatenate([self._sizes, np.multiply.outer(SIZES, self._error)[None]])
        kept = [place for place, start in enumerate(self._starts) if _is_kept(start, window - start)]
        if len(kept) < len(self._starts):
            self._starts = [self._starts[place] for place in kept]
            self._before, self._logs, self._sizes = self._before[:, kept], self._logs[kept], self._sizes[kept]

    def _found(self, value: int, window: int, per_report: float) -> DetectedChange:
        """Return the change of a value, which then begins again."""
        place = int(np.logaddexp.reduce(self._logs[:, :, value], axis=1).argmax())
        reports, total = (float(each) for each in self._before[:, place, value])
        later = np.flatnonzero(self._before[0, :, value] > reports)  # starts after the first window since
        is_partial = not len(later)
        skipped = self._before[:, place if is_partial else later[0], value]
        rest = float(self._reports[value] - skipped[0])
        before, after = total / reports, float(self._sum[value] - skipped[1]) / rest
        compared = int(np.isfinite(self._logs[:, 0, value]).sum())
        quantile = quantile_of(1 - (1 - LEVEL) / compared)
        half = quantile * float(np.sqrt(per_report * (1 / reports + 1 / rest)))
        self._reports[value] = self._sum[value] = self._noise[value] = 0
        self._before[:, :, value] = 0
        self._logs[:, :, value] = -np.inf
        low, high = _difference_interval(after - before, half)
        found = DetectedChange(value, self._starts[place], window, before, after, low, high, is_partial)
        if is_partial:
            self._partial[value] = _Partial(found, quantile, per_report / reports)
        return found


def _difference_interval(change: float, half: float) -> tuple[float, float]:
    """Return the ends of a difference of two fractions, which is in [-1, 1]."""
    return max(-1.0, min(1.0, change - half)), max(-1.0, min(1.0, change + half))


def _is_kept(start: int, age: int) -> bool:
    """Whether a start of this age stays: every one of the recent, then every second, fourth and so on."""
    return age < RECENT_STARTS or start % (1 << (age // RECENT_STARTS).bit_length()) == 0


def _spread(share: FloatArray) -> FloatArray:
    """Variance of whether one client has the value, if clients are drawn from a population."""
    inside = np.clip(share, 0, 1)
    return inside * (1 - inside)


def _log_factors(
    sizes: FloatArray, lag: FloatArray, difference: FloatArray, variance: FloatArray, most: FloatArray
) -> FloatArray:
    """Return the log of each factor of rule 1, float64 (starts, 2 sizes, n): rises, then falls.

    Parameters
    ----------
    sizes : float64 array (starts, sizes, n), |a|.
    lag : float64 array (starts, n), g, in [0, 1].
    difference, variance, most : float64 arrays (n,), d, v and c.
    """
    mean = sizes * lag[:, None]
    eta = mean / (variance + most * mean)
    return np.concatenate([eta * (difference - mean / 2), eta * (-difference - mean / 2)], axis=1)
