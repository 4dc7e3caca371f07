"""Runs of a simulation of fixed clients, each with noise of its own, and the means of what they measure."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from deniable.estimators.arrays import FloatArray

#: One run: draws reports, estimates, and returns what it measures by name, figures of one shape in all runs.
Measuring = Callable[[np.random.Generator], Mapping[str, ArrayLike]]


def means(run: Measuring, runs: int, seed: int = 1) -> dict[str, FloatArray]:
    """Average each figure over the runs, elementwise, float64."""
    rng = np.random.default_rng(seed)
    found = [run(rng) for _ in range(runs)]
    return {
        name: np.mean([np.asarray(each[name], np.float64) for each in found], axis=0) for name in found[0]
    }
