"""multi-freq-ldpy: GRR (k-RR), local hashing and unary encoding (one-hot RAPPOR), one call for each report.

Its clients are compiled by numba, and can be called from a loop that a user writes and compiles as well.

It has no Bloom filters: reports have one true bit, of as many bits as the filter's. Its clients take
epsilons; those of f, p and q for one bit are given.
Its iterative Bayesian update, compiled too, takes a channel as a matrix.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from multi_freq_ldpy.estimators.Histogram_estimator import IBU
from multi_freq_ldpy.long_freq_est.L_LH import L_LH_Client
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Aggregator_MI, L_SUE_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from numba import njit

LIBRARY = "multi-freq-ldpy"

# Defaults of its aggregators: steps, tolerance and its measure.
STOPPING = (10_000, 1e-12, "max_abs")


def krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Randomize this many values."""
    values = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        _ = [GRR_Client(value, k, epsilon) for value in values]

    return run


def local_hash(count: int, epsilon: float, words: int) -> Callable[[], object]:
    """Optimized local hashing of this many integers; its client is not compiled."""
    values = np.random.default_rng(1).integers(words, size=count).tolist()

    def run() -> None:
        _ = [LH_Client(value, words, epsilon) for value in values]

    return run


def longitudinal_hash(count: int, epsilon_inf: float, epsilon_one: float, words: int) -> Callable[[], object]:
    """Both steps of optimized local hashing of this many integers; it remembers no permanent response."""
    values = np.random.default_rng(1).integers(words, size=count).tolist()

    def run() -> None:
        _ = [L_LH_Client(value, words, epsilon_inf, epsilon_one) for value in values]

    return run


def _each_krr(values: npt.NDArray[np.int64], k: int, epsilon: float) -> npt.NDArray[np.int64]:
    reports = np.empty_like(values)
    for number in range(len(values)):
        reports[number] = GRR_Client(values[number], k, epsilon)
    return reports


_all_krr = njit(_each_krr)


def looped_krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Randomize this many values in a compiled loop."""
    values = np.random.default_rng(1).integers(k, size=count)
    _all_krr(values[:1], k, epsilon)  # compiles it

    def run() -> None:
        _all_krr(values, k, epsilon)

    return run


def _rappor(client: Any, both_steps: bool, looped: bool) -> Callable[..., Callable[[], object]]:
    """Randomize with one of its clients: both steps without memoization, or the permanent one alone.

    The instantaneous step of its client is symmetric, so epsilon stands for p and q.
    """

    def each(
        values: npt.NDArray[np.int64], bits: int, asked: tuple[float, float | bool]
    ) -> npt.NDArray[np.uint8]:
        reports = np.empty((len(values), bits), np.uint8)
        for number in range(len(values)):
            reports[number] = client(values[number], bits, *asked)
        return reports

    compiled = njit(each)

    def prepared(count: int, bits: int, f: float, p: float, q: float, **_: float) -> Callable[[], object]:
        asked = _epsilons(f, p, q) if both_steps else (_permanent(f), False)
        values = np.random.default_rng(1).integers(bits, size=count)
        listed = values.tolist()

        def run_loop() -> None:
            compiled(values, bits, asked)

        def run() -> None:
            _ = [client(value, bits, *asked) for value in listed]

        if not looped:
            return run
        compiled(values[:1], bits, asked)  # compiles it
        return run_loop

    return prepared


def _epsilons(f: float, p: float, q: float) -> tuple[float, float]:
    """Probabilities of the permanent step, and of a report."""
    high, low = q * (1 - f / 2) + p * f / 2, p * (1 - f / 2) + q * f / 2
    return _permanent(f), math.log(high * (1 - low) / (low * (1 - high)))


def _permanent(f: float) -> float:
    return 2 * math.log((1 - f / 2) / (f / 2))


def count_krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Count decoded reports, a list as its client returns it, and estimate, in one call."""
    reports = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        GRR_Aggregator_MI(reports, k, epsilon)

    return run


def count_rappor(count: int, bits: int, f: float, p: float, q: float, **_: float) -> Callable[[], object]:
    """Count decoded reports, a list of arrays as its client returns it, and estimate."""
    rows = np.random.default_rng(1).integers(2, size=(min(count, 1000), bits)).astype(np.float64)
    reports = [rows[number % len(rows)] for number in range(count)]
    epsilons = _epsilons(f, p, q)

    def run() -> None:
        L_SUE_Aggregator_MI(reports, *epsilons)

    return run


def iterate(count: int, path: str, p: float, q: float) -> Callable[[], object]:
    """Iterate from the uniform distribution. Matrix and shares are prepared, and the code is compiled."""
    counts = np.load(path)
    k, shares = len(counts), counts / counts.sum()
    channel = np.full((k, k), q)
    np.fill_diagonal(channel, p)
    IBU(2, np.eye(2), np.full(2, 0.5), *STOPPING)

    def run() -> object:
        for _ in range(count):
            frequency = IBU(k, channel, shares, *STOPPING)
        return frequency.tolist()

    return run


JOBS = {
    "IBU": iterate,
    "k-RR": krr,
    "local hashing": local_hash,
    "longitudinal local hashing": longitudinal_hash,
    "RAPPOR": _rappor(L_SUE_Client, both_steps=True, looped=False),
    "k-RR, compiled loop": looped_krr,
    "RAPPOR, compiled loop": _rappor(L_SUE_Client, both_steps=True, looped=True),
    "one step": _rappor(UE_Client, both_steps=False, looped=False),
    "one step, compiled loop": _rappor(UE_Client, both_steps=False, looped=True),
    "count k-RR": count_krr,
    "count RAPPOR": count_rappor,
}
