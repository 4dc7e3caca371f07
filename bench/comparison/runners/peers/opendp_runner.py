"""opendp: randomized response of a category, or of a bit vector, one call for each report."""

import math
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

LIBRARY = "opendp"

dp.enable_features("contrib")


def krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Randomize this many values."""
    truth = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    randomize = dp.m.make_randomized_response(categories=list(range(k)), prob=truth)
    values = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        _ = [randomize(value) for value in values]

    return run


def permanent(count: int, bits: int, hashes: int, words: int, f: float, **_: float) -> Callable[[], object]:
    """Run the permanent step on prepared Bloom filters."""
    domain, metric = dp.bitvector_domain(max_weight=hashes), dp.discrete_distance()
    randomize = dp.m.make_randomized_response_bitvec(domain, metric, f=f)
    generator = np.random.default_rng(1)
    filters = [_filter(generator.choice(bits, hashes, replace=False), bits) for _ in range(words)]
    chosen = [filters[number] for number in generator.integers(words, size=count)]

    def run() -> None:
        _ = [randomize(each) for each in chosen]

    return run


def _filter(positions: "np.typing.NDArray[np.int64]", bits: int) -> bytes:
    row = np.zeros(bits, np.uint8)
    row[positions] = 1
    return np.packbits(row).tobytes()


def count_krr(count: int, k: int, **_: float) -> Callable[[], object]:
    """Count decoded reports, given as an array because it converts a list element by element."""
    domain, metric = dp.vector_domain(dp.atom_domain(T=dp.i32)), dp.symmetric_distance()
    count_them = dp.t.make_count_by_categories(domain, metric, categories=list(range(k)), null_category=False)
    reports = np.random.default_rng(1).integers(k, size=count, dtype=np.int32)

    def run() -> None:
        count_them(reports)

    return run


def count_rappor(count: int, bits: int, hashes: int, f: float, **_: float) -> Callable[[], object]:
    """Count reports of one cohort, bytes as its client returns them, and debias, in one call."""
    bits_of = np.random.default_rng(1).integers(256, size=(min(count, 1000), bits // 8), dtype=np.uint8)
    rows = [row.tobytes() for row in bits_of]
    reports = [rows[number % len(rows)] for number in range(count)]

    def run() -> None:
        dp.m.debias_randomized_response_bitvec(reports, f)

    return run


JOBS = {"k-RR": krr, "RAPPOR": permanent, "count k-RR": count_krr, "count RAPPOR": count_rappor}
