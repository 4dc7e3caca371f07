"""True counts for testing estimators, and the k-RR counts of their reports."""

import numpy as np
from numpy.typing import NDArray

from estimators.mechanisms.krr import KRR


def zipf_shares(size: int, exponent: float) -> NDArray[np.float64]:
    """Shares proportional to rank^-exponent that sum to 1, float64 (size,)."""
    weights = np.arange(1, size + 1.0) ** -exponent
    shares: NDArray[np.float64] = weights / weights.sum()
    return shares


def round_to_counts(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole counts, int64 (n,), that sum to total: shares rounded down, the remainder added to the first."""
    counts = np.floor(shares * total).astype(np.int64)
    counts[0] += total - counts.sum()
    return counts


def report_counts(rng: np.random.Generator, truth: NDArray[np.int64], mechanism: KRR) -> NDArray[np.int64]:
    """Reports per value, int64 (k,), when truth[v] clients hold v.

    k-RR reports the truth with probability p - q, and otherwise one of all k values uniformly. Hence one
    binomial per value and one multinomial simulate all clients.
    """
    kept = rng.binomial(truth, mechanism.contrast)
    uniform = np.full(mechanism.k, 1 / mechanism.k)
    return kept + rng.multinomial(int((truth - kept).sum()), uniform)
