"""Simulated reports of pairs: known true pairs, exact channel, a seed."""

import numpy as np

from deniable.estimators.mechanisms.matrix.pair import PairKRR


def pair_counts(rng: np.random.Generator, truth: np.ndarray, mechanism: PairKRR) -> np.ndarray:
    """Simulate the reports per pair, int64 (K1, K2), if truth[a, b] clients hold (a, b)."""
    first, second = (field.channel for field in mechanism.fields)
    counts = np.zeros(mechanism.shape, np.int64)
    for (a, b), clients in np.ndenumerate(truth):
        counts += rng.multinomial(clients, np.outer(first[:, a], second[:, b]).ravel()).reshape(counts.shape)
    return counts


def sparse_pairs(rng: np.random.Generator, mechanism: PairKRR, reports: int) -> np.ndarray:
    """Simulate the reports per pair, int64 (K1, K2), of random shares of which a tenth hold nearly all."""
    shares = rng.dirichlet(np.full(mechanism.width, 0.1))
    first, second = (field.channel for field in mechanism.fields)
    rates = first @ shares.reshape(mechanism.shape) @ second
    return rng.multinomial(reports, (rates / rates.sum()).ravel()).reshape(mechanism.shape)
