"""Our own jobs: from counts to frequencies."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.decoding.bloom import decode
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.ibu import Update, ibu
from deniable.estimators.frequency.krr import estimate, mle
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor

LIBRARY = "deniable"


def mle_star(count: int, path: str, epsilon: float) -> Callable[[], object]:
    """Find the most likely distribution."""
    counts = np.load(path)
    mechanism = KRR.from_epsilon(len(counts), epsilon)

    def run() -> object:
        for _ in range(count):
            frequency = mle(counts, mechanism)
        return frequency.tolist()

    return run


def estimating(
    estimator: Callable[[NDArray[np.int64], KRR], Estimate | Update], count: int, path: str, epsilon: float
) -> Callable[[], object]:
    """Run one of our estimators on counts."""
    counts = np.load(path)
    mechanism = KRR.from_epsilon(len(counts), epsilon)

    def run() -> object:
        for _ in range(count):
            found = estimator(counts, mechanism)
        return found.frequency.tolist()

    return run


def decode_rappor(
    count: int,
    window: str,
    words: list[str],
    bits: int,
    hashes: int,
    cohorts: int,
    f: float,
    p: float,
    q: float,
) -> Callable[[], object]:
    """Decode a window. The first run in a process also hashes the candidates' bits."""
    mechanism = Rappor.from_probabilities(bits, hashes, cohorts, f, p, q)
    with np.load(window) as kept:
        ones, sizes = kept["ones"], kept["sizes"]

    def run() -> object:
        for _ in range(count):
            found = decode(ones, sizes, words, mechanism)
        return {
            "shares": found.frequency.tolist(),
            "reported": found.significant.tolist(),
            "peak_mib": _peak_mib(),
        }

    return run


def _peak_mib() -> float:
    """Peak memory of this process, MiB."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


JOBS = {
    "MLE*": mle_star,
    "estimate": partial(estimating, estimate),
    "IBU": partial(estimating, ibu),
    "decode": decode_rappor,
}
