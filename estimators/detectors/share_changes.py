"""Detects that a share changed, at a stated rate of false alarms, from window to window.

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
any reports.

Rule 2: R is the sum, over all starts j, of the mean e-process of several a. R(t) - t is a supermartingale
without a change, so the mean time until R reaches a threshold A is at least A windows (Shiryaev and
Roberts). Leaving out starts only lowers R. With the threshold n A for each of n values, the sum of all R is
below n A before the first alarm, so the mean time to any alarm is at least A windows, too, whatever values
have in common.

Rule 3: after an alarm the value begins again with the next window. Nothing before it is used.

Source: Shin, Ramdas, Rinaldo, "E-detectors" (New England Journal of Statistics in Data Science 2, 2024),
theorem 2.2 and section 4; Robbins, Siegmund (1974) for unknown shares before the change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.frequency.intervals.acceptance import LEVEL, quantile_of

#: Sizes of change that evidence is gathered for, in standard errors of a first window, each up and down.
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
    before, after : mean shares of the windows before and since, unbiased, fractions.
    low, high : interval of after - before, with 95 % for all starts that were compared at once.
    """

    value: int
    since: int
    before: float
    after: float
    low: float
    high: float


class ShareChangeDetector:
    """Watches the shares of n values.

    Parameters
    ----------
    values : n, >= 1.
    windows_between : mean number of windows to the first false alarm, at least, > 0.
    """

    def __init__(self, values: int, windows_between: float) -> None:
        self._threshold = values * windows_between
        self._sizes = np.zeros((len(SIZES), values))
        self._reports, self._sum, self._noise = np.zeros((3, values))  # since the last alarm of each value
        self._starts: list[int] = []
        self._before = np.zeros((2, 0, values))  # reports and sums before each start
        self._logs = np.zeros((0, 2 * len(SIZES), values))  # log of each e-process

    def add(
        self, window: int, reports: int, unbiased: FloatArray, std_error: FloatArray, step: float
    ) -> list[DetectedChange]:
        """Add the next window, and return the changes found with it.

        Parameters
        ----------
        window : its number, above those before; gaps are allowed.
        reports : N of the window, >= 1.
        unbiased, std_error : float64 arrays (n,), fractions; a window with an error of inf is left out for
            the value.
        step : N times the most that one report adds to an estimate, >= 0.
        """
        known = np.isfinite(std_error)
        watched, first = known & (self._reports > 0), known & (self._reports == 0)
        self._begin(first, reports, unbiased, std_error)
        self._keep_starts(window)
        noise = np.where(known, (reports * std_error) ** 2, 0)
        new_reports = self._reports + reports * known
        new_sum = self._sum + reports * np.where(known, unbiased, 0)
        per_report = (self._noise + noise) / np.maximum(new_reports, 1)
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
        with np.errstate(over="ignore"):
            evidence = np.exp(self._logs).mean(axis=1).sum(axis=0)
        alarms = np.flatnonzero(evidence >= self._threshold).tolist()
        return [self._found(value, float(per_report[value])) for value in alarms]

    def _begin(
        self, first: NDArray[np.bool_], reports: int, unbiased: FloatArray, std_error: FloatArray
    ) -> None:
        """Set the sizes of values that begin with this window."""
        error = np.sqrt(std_error[first] ** 2 + _spread(unbiased[first]) / reports)
        self._sizes[:, first] = np.multiply.outer(SIZES, error)

    def _keep_starts(self, window: int) -> None:
        """Add this window as a start for values that have a window before it, and drop old starts."""
        self._starts.append(window)
        row = np.stack([self._reports, self._sum])[:, None]
        self._before = np.concatenate([self._before, row], axis=1)
        begun = np.where(self._reports > 0, 0.0, -np.inf)
        logs = np.broadcast_to(begun, (1, *self._logs.shape[1:]))
        self._logs = np.concatenate([self._logs, logs])
        kept = [place for place, start in enumerate(self._starts) if _is_kept(start, window - start)]
        if len(kept) < len(self._starts):
            self._starts = [self._starts[place] for place in kept]
            self._before, self._logs = self._before[:, kept], self._logs[kept]

    def _found(self, value: int, per_report: float) -> DetectedChange:
        """Return the change of a value, which then begins again."""
        place = int(np.logaddexp.reduce(self._logs[:, :, value], axis=1).argmax())
        reports, total = (float(each) for each in self._before[:, place, value])
        rest = float(self._reports[value]) - reports
        before, after = total / reports, (float(self._sum[value]) - total) / rest
        compared = int(np.isfinite(self._logs[:, 0, value]).sum())
        quantile = quantile_of(1 - (1 - LEVEL) / compared)
        half = quantile * float(np.sqrt(per_report * (1 / reports + 1 / rest)))
        self._reports[value] = self._sum[value] = self._noise[value] = 0
        self._logs[:, :, value] = -np.inf
        change = after - before
        return DetectedChange(value, self._starts[place], before, after, change - half, change + half)


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
    sizes : float64 array (sizes, n), |a|.
    lag : float64 array (starts, n), g, in [0, 1].
    difference, variance, most : float64 arrays (n,), d, v and c.
    """
    mean = sizes * lag[:, None]
    eta = mean / (variance + most * mean)
    return np.concatenate([eta * (difference - mean / 2), eta * (-difference - mean / 2)], axis=1)
