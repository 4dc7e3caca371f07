"""multi-freq-ldpy: GRR (k-RR) and unary encoding (one-hot RAPPOR), one call for each report.

Its clients are compiled by numba, and can be called from a loop that a user writes and compiles as well.

It has no Bloom filters: reports have one true bit, of as many bits as the filter's. Its clients take
epsilons; those of f, p and q for one bit are given.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from multi_freq_ldpy.long_freq_est.L_SUE import L_SUE_Aggregator_MI, L_SUE_Client
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Client
from numba import njit

LIBRARY = "multi-freq-ldpy"


def krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Randomize so many values."""
    values = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        _ = [GRR_Client(value, k, epsilon) for value in values]

    return run


def _each_krr(values: npt.NDArray[np.int64], k: int, epsilon: float) -> npt.NDArray[np.int64]:
    reports = np.empty_like(values)
    for number in range(len(values)):
        reports[number] = GRR_Client(values[number], k, epsilon)
    return reports


_all_krr = njit(_each_krr)


def looped_krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Randomize so many values in a compiled loop."""
    values = np.random.default_rng(1).integers(k, size=count)
    _all_krr(values[:1], k, epsilon)  # which compiles it

    def run() -> None:
        _all_krr(values, k, epsilon)

    return run


def longitudinal(count: int, bits: int, f: float, p: float, q: float, **_: float) -> Callable[[], object]:
    """Both steps, neither memoized. Its instantaneous step is symmetric, so epsilon stands for p and q."""
    epsilons = _epsilons(f, p, q)
    values = np.random.default_rng(1).integers(bits, size=count).tolist()

    def run() -> None:
        _ = [L_SUE_Client(value, bits, *epsilons) for value in values]

    return run


def _epsilons(f: float, p: float, q: float) -> tuple[float, float]:
    """Of the permanent step, and of a report."""
    high, low = q * (1 - f / 2) + p * f / 2, p * (1 - f / 2) + q * f / 2
    return _permanent(f), math.log(high * (1 - low) / (low * (1 - high)))


def _permanent(f: float) -> float:
    return 2 * math.log((1 - f / 2) / (f / 2))


def _each_longitudinal(
    values: npt.NDArray[np.int64], bits: int, permanent: float, one: float
) -> npt.NDArray[np.uint8]:
    reports = np.empty((len(values), bits), np.uint8)
    for number in range(len(values)):
        reports[number] = L_SUE_Client(values[number], bits, permanent, one)
    return reports


_all_longitudinal = njit(_each_longitudinal)


def looped_longitudinal(
    count: int, bits: int, f: float, p: float, q: float, **_: float
) -> Callable[[], object]:
    """Both steps, in a compiled loop."""
    epsilons = _epsilons(f, p, q)
    values = np.random.default_rng(1).integers(bits, size=count)
    _all_longitudinal(values[:1], bits, *epsilons)  # which compiles it

    def run() -> None:
        _all_longitudinal(values, bits, *epsilons)

    return run


def one_step(count: int, bits: int, f: float, **_: float) -> Callable[[], object]:
    """The permanent step alone."""
    permanent = _permanent(f)
    values = np.random.default_rng(1).integers(bits, size=count).tolist()

    def run() -> None:
        _ = [UE_Client(value, bits, permanent, False) for value in values]

    return run


def _each_one_step(values: npt.NDArray[np.int64], bits: int, permanent: float) -> npt.NDArray[np.uint8]:
    reports = np.empty((len(values), bits), np.uint8)
    for number in range(len(values)):
        reports[number] = UE_Client(values[number], bits, permanent, False)
    return reports


_all_one_step = njit(_each_one_step)


def looped_one_step(count: int, bits: int, f: float, **_: float) -> Callable[[], object]:
    """The permanent step alone, in a compiled loop."""
    permanent = _permanent(f)
    values = np.random.default_rng(1).integers(bits, size=count)
    _all_one_step(values[:1], bits, permanent)  # which compiles it

    def run() -> None:
        _all_one_step(values, bits, permanent)

    return run


def count_krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Count reports that are decoded already, a list as its client makes it, and estimate: it is one call."""
    reports = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        GRR_Aggregator_MI(reports, k, epsilon)

    return run


def count_rappor(count: int, bits: int, f: float, p: float, q: float, **_: float) -> Callable[[], object]:
    """Count reports that are decoded already, a list of arrays as its client makes it, and estimate."""
    rows = np.random.default_rng(1).integers(2, size=(min(count, 1000), bits)).astype(np.float64)
    reports = [rows[number % len(rows)] for number in range(count)]
    epsilons = _epsilons(f, p, q)

    def run() -> None:
        L_SUE_Aggregator_MI(reports, *epsilons)

    return run


JOBS = {
    "k-RR": krr,
    "RAPPOR": longitudinal,
    "k-RR, compiled loop": looped_krr,
    "RAPPOR, compiled loop": looped_longitudinal,
    "one step": one_step,
    "one step, compiled loop": looped_one_step,
    "count k-RR": count_krr,
    "count RAPPOR": count_rappor,
}
