"""Simulated reports for the estimators' tests: known truth, exact channel, a seed."""

from collections.abc import Sequence

import numpy as np

from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def zipf_counts(size: int, total: int, exponent: float = 1.0) -> np.ndarray:
    """Return counts proportional to rank^-exponent that sum to total; the first absorbs rounding."""
    shares = np.arange(1, size + 1.0) ** -exponent
    counts = np.floor(shares / shares.sum() * total).astype(np.int64)
    counts[0] += total - counts.sum()
    return counts


def krr_counts(rng, truth: np.ndarray, mechanism: KRR) -> np.ndarray:
    """Simulate the reports per value if truth[v] clients hold v."""
    kept = rng.binomial(truth, mechanism.p)
    others = (1 - np.eye(mechanism.k)) / (mechanism.k - 1)
    return kept + rng.multinomial(truth - kept, others).sum(axis=0)


def rappor_counts(
    rng, truth: np.ndarray, words: Sequence[str], mechanism: Rappor
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate bit counts (cohorts, bits) and cohort sizes if truth[v] clients hold words[v]."""
    clients = rng.multinomial(truth, np.full(mechanism.cohorts, 1 / mechanism.cohorts))
    sizes = clients.sum(axis=0)
    design = bloom_design(words, mechanism).toarray().reshape(mechanism.cohorts, mechanism.bits, -1)
    ones = np.einsum("cbv,vc->cb", design, clients).astype(np.int64)
    reported = rng.binomial(ones, mechanism.q_star) + rng.binomial(sizes[:, None] - ones, mechanism.p_star)
    return reported, sizes
