"""What pairs cost a worker: time of an estimate, and bytes and time of counting bit pairs of Bloom RAPPOR.

Times are medians of 9, on one thread. Bit pairs are counted with numpy: of each pack of 1,000 reports the
bits of both fields are float32 matrices, whose product has the reports that show bit i of the first and bit j
of the second.
"""

import statistics
import time
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.sections import ResultRow, Section
from deniable.aggregator.ledger.counting.bit_counting import count_bits
from deniable.estimators.decoding.hot.pair import decode_pair
from deniable.estimators.frequency.pairs.estimate import estimate_pair
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR

SIZES = ((17, 3), (17, 105), (44, 45), (2, 1000))
REPORTS = (10_000, 336_776, 10_000_000)
EPSILON = 4.0
ROUNDS = 9
BITS, COHORTS, PACK = 128, 8, 1000
COUNTER_BYTES = 8


def milliseconds(work: Callable[[], object]) -> float:
    """Median time of 9 calls, after one that is not timed."""
    times = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * statistics.median(times[1:])


def estimate_times(k1: int, k2: int, reports: int) -> tuple[float, float]:
    """Milliseconds of one estimate of `k-rr-pair` and of `one-hot-pair`, most pairs of which are rare."""
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.full(k1 * k2, 0.1)).reshape(k1, k2)
    split, bits = (
        PairKRR.from_epsilons(k1, k2, EPSILON / 2, EPSILON / 2),
        OneHotPair.from_epsilon(k1, k2, EPSILON),
    )
    rates = split.first.channel @ shares @ split.second.channel
    counts = rng.multinomial(reports, (rates / rates.sum()).ravel())
    ones = np.zeros((1, bits.bits), np.int64)
    chances = bits.p_star + (bits.q_star - bits.p_star) * shares.ravel()
    ones[0, : bits.buckets] = rng.binomial(reports, chances)
    sizes = np.array([reports])
    return milliseconds(lambda: estimate_pair(counts, split)), milliseconds(
        lambda: decode_pair(ones, sizes, bits)
    )


def count_bit_pairs(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """Reports that show bit i of the first field and j of the second, float32 (bits, bits), below 2^24."""
    rows = (np.unpackbits(each, axis=1, bitorder="little").astype(np.float32) for each in (first, second))
    one, other = rows
    product: NDArray[Any] = one.T @ other
    return product


def bloom_filters() -> str:
    """What the ledger of one window and partition would hold, and the time to count a report."""
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 256, (2, PACK, BITS // 8), np.uint8)
    pairs = 1000 * milliseconds(lambda: count_bit_pairs(first, second)) / PACK
    alone = 1000 * milliseconds(lambda: count_bits(first)) / PACK
    counters = BITS**2 * COHORTS
    return (
        f"Bit pairs of two Bloom filters of {BITS} bits in {COHORTS} cohorts: {counters:,} counters, "
        f"{counters * COUNTER_BYTES / 2**20:g} MiB a window and partition, where one filter has "
        f"{BITS * COHORTS * COUNTER_BYTES / 2**10:g} KiB; {pairs:.2g} µs a report, where counting the "
        "bits of one "
        f"takes {alone:.2g} µs."
    )


def costs() -> Section:
    """Time of an estimate by size and number of reports, and a sentence on Bloom filters."""
    rows: list[ResultRow] = [
        {
            "values": f"{k1} x {k2}",
            "reports": reports,
            "k-rr-pair, ms": f"{split:.1f}",
            "one-hot-pair, ms": f"{bits:.1f}",
        }
        for (k1, k2), reports in product(SIZES, REPORTS)
        for split, bits in [estimate_times(k1, k2, reports)]
    ]
    return Section("Times of an estimate, medians of 9, on one thread.", rows, bloom_filters())


CASES = {"what pairs cost a worker": costs}
