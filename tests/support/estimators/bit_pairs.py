"""Simulated reports with a bit for each pair: known true pairs, exact channel, a seed."""

import numpy as np

from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair


def bits_of_pairs(
    rng: np.random.Generator, truth: np.ndarray, mechanism: OneHotPair
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate bit counts, int64 (1, bits), and the number of reports, if truth[a, b] clients hold (a, b)."""
    held = np.zeros(mechanism.bits, np.int64)
    held[: mechanism.buckets] = truth.ravel()
    reports = int(truth.sum())
    ones = rng.binomial(held, mechanism.q_star) + rng.binomial(reports - held, mechanism.p_star)
    return ones[None], np.array([reports])


def expected_bits(shares: np.ndarray, reports: int, mechanism: OneHotPair) -> tuple[np.ndarray, np.ndarray]:
    """Expected bit counts, rounded, of reports with these shares of pairs."""
    rates = np.full(mechanism.bits, mechanism.p_star)
    rates[: mechanism.buckets] += (mechanism.q_star - mechanism.p_star) * shares.ravel()
    return np.rint(reports * rates).astype(np.int64)[None], np.array([reports])
