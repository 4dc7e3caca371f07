"""Test the demo's canary: do its final windows differ from the sent distribution only by chance?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from deniable.deploy.demo.verdict import FALSE_ALARM_RATE
from deniable.estimators.canary_fit import chi_square
from deniable.estimators.mechanisms.traits import SymmetricChannel


@dataclass(frozen=True)
class CanaryVerdict:
    """How far the windows of a canary are off, all together.

    Parameters
    ----------
    name : of the collection.
    windows : number of windows tested.
    largest : greatest chi-square of a window, 0 without windows.
    threshold : which the largest exceeds by chance in one run of 10^6.
    """

    name: str
    windows: int
    largest: float
    threshold: float

    def sentence(self) -> str:
        """State the result in words."""
        windows = "1 final window" if self.windows == 1 else f"{self.windows} final windows"
        figures = f"largest {self.largest:.1f}, threshold {self.threshold:.1f}"
        return f"{self.name}: chi-square of {windows}, {figures}"

    def faults(self) -> list[str]:
        """Return what is wrong, one sentence each; empty if chance explains it."""
        if not self.windows:
            return [f"{self.name}: no window became final"]
        if self.largest > self.threshold:
            return [f"{self.sentence()}: reports do not have the distribution that was sent"]
        return []


def judge_canary(
    name: str, windows: Sequence[NDArray[np.int64]], mechanism: SymmetricChannel
) -> CanaryVerdict:
    """Test each final window against the distribution that was sent.

    A union bound: each of n windows exceeds the threshold with probability 1e-6 / n, so an honest demo fails
    once in 10^6 runs, whatever n. With 100,000 reports a window, an epsilon that is 10 % off in one of 20
    windows fails it with probability 99.9 %.

    Parameters
    ----------
    name : of the collection.
    windows : int64 arrays (k,), reports per value, each of at least `least_reports`.
    mechanism : k-RR.
    """
    threshold = float(chdtri(mechanism.k - 1, FALSE_ALARM_RATE / max(1, len(windows))))
    largest = max((chi_square(counts, mechanism) for counts in windows), default=0.0)
    return CanaryVerdict(name, len(windows), largest, threshold)
