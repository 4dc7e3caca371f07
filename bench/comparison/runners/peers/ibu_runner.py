"""multi-freq-ldpy: the iterative Bayesian update, compiled, of a channel given as a matrix."""

from collections.abc import Callable

import numpy as np
from multi_freq_ldpy.estimators.Histogram_estimator import IBU

LIBRARY = "multi-freq-ldpy"

# Defaults of its aggregators.
ITERATIONS = 10_000
TOLERANCE = 1e-12
MEASURE = "max_abs"


def iterate(count: int, path: str, p: float, q: float) -> Callable[[], object]:
    """Iterate from the uniform distribution. Matrix and shares are prepared, and the code is compiled."""
    counts = np.load(path)
    k, shares = len(counts), counts / counts.sum()
    channel = np.full((k, k), q)
    np.fill_diagonal(channel, p)
    IBU(2, np.eye(2), np.full(2, 0.5), ITERATIONS, TOLERANCE, MEASURE)

    def run() -> object:
        for _ in range(count):
            frequency = IBU(k, channel, shares, ITERATIONS, TOLERANCE, MEASURE)
        return frequency.tolist()

    return run


JOBS = {"IBU": iterate}
