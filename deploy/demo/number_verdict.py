"""The demo's number: mean and quantiles of an estimate, beside those of the numbers that were sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import Estimate, QuantileEstimate, ScalarEstimate


@dataclass(frozen=True)
class JudgedNumber:
    """The estimate of a number over all windows, beside the truth.

    Parameters
    ----------
    collection : that was estimated, of mechanism `number`.
    estimate : over all windows together.
    truth : true mean and quantiles by name.
    """

    collection: Collection
    estimate: Estimate
    truth: Mapping[str, float]

    def figures(self) -> dict[str, ScalarEstimate | QuantileEstimate]:
        """Return mean and quantiles by name, the median first and the most extreme last."""
        outwards = sorted(self.estimate.quantiles, key=lambda each: abs(each.level - 0.5))
        quantiles = {_name(each.level): each for each in outwards}
        return {**({"mean": self.estimate.mean} if self.estimate.mean else {}), **quantiles}

    def misses(self) -> list[str]:
        """Return names of figures whose 95 % interval misses the truth."""
        return [
            name for name, each in self.figures().items() if not each.low <= self.truth[name] <= each.high
        ]

    def discoveries(self) -> list[str]:
        """Return nothing: a number has no values that may not occur."""
        return []


def judge_number(collection: Collection, estimate: Estimate, numbers: Sequence[float]) -> JudgedNumber:
    """Compute the true mean and quantiles of the numbers that were sent.

    Parameters
    ----------
    collection : of mechanism `number`.
    estimate : over all windows.
    numbers : that were sent, at least one.
    """
    sent = np.array(numbers, np.float64)
    truth = {_name(each.level): float(np.quantile(sent, each.level)) for each in estimate.quantiles}
    return JudgedNumber(collection, estimate, {"mean": float(sent.mean()), **truth})


def _name(level: float) -> str:
    """Short enough for a column: 25 % for the number that a quarter is below."""
    return "median" if level == 0.5 else f"{100 * level:g} %"
