"""Valid counts that no population gives, of every kind: all in one cell, alternating, huge, one report."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from bench.estimators.conditional.buckets import bit_probabilities, both_epsilons
from bench.estimators.conditional.fixed_clients import names
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave

HUGE = 1 << 40

Counts = NDArray[np.int64]


def rows_of(size: int) -> tuple[int, int]:
    """Values of each field of a pair with about so many pairs."""
    first = max(2, int(size**0.5))
    return first, max(2, size // first)


def hot_of(size: int, hot: int, epsilon: float) -> HotRappor:
    """RAPPOR without hashing, with a permanent step."""
    return HotRappor.from_probabilities(size, hot, 0.25, *bit_probabilities(epsilon, hot))


def bloom_of(cohorts: int, size: int, epsilon: float) -> Rappor:
    """Bloom RAPPOR of few bits for few values."""
    bits = 32 if size < 20 else 128
    return Rappor.from_probabilities(bits, 2, cohorts, 0.1, *bit_probabilities(epsilon, 2))


#: What builds a mechanism of a size at an epsilon, by kind.
MECHANISMS: dict[str, Callable[[int, float], Mechanism]] = {
    "k-rr": KRR.from_epsilon,
    "k-rr-longitudinal": lambda size, epsilon: LongitudinalKRR.from_epsilons(size, *both_epsilons(epsilon)),
    "rappor-one-hot": lambda size, epsilon: hot_of(size, 1, epsilon),
    "rappor-k-hot": lambda size, epsilon: hot_of(size, max(1, size // 2), epsilon),
    "rappor, 1 cohort": lambda size, epsilon: bloom_of(1, size, epsilon),
    "rappor, 2 cohorts": lambda size, epsilon: bloom_of(2, size, epsilon),
    "local-hash": lambda size, epsilon: LocalHash.from_epsilon(epsilon),
    "local-hash-longitudinal": lambda size, epsilon: LongitudinalHash.from_epsilons(*both_epsilons(epsilon)),
    "prefix-tree": lambda size, epsilon: PrefixTree.from_epsilon((2, 12), epsilon),
    "number": lambda size, epsilon: SquareWave.from_epsilon(0.0, 1.0, min(512, max(4, size)), epsilon),
    "k-rr-pair": lambda size, epsilon: PairKRR.from_epsilons(*rows_of(size), epsilon / 2, epsilon / 2),
    "one-hot-pair": lambda size, epsilon: OneHotPair.from_epsilon(*rows_of(size), epsilon),
}


def collection_of(kind: str, size: int, epsilon: float) -> Collection:
    """A collection of a kind with so many values, candidates or steps."""
    mechanism = MECHANISMS[kind](size, epsilon)
    match mechanism:
        case PairKRR() | OneHotPair():
            first, second = rows_of(size)
            fields = Field("a", names(first, "a"), False), Field("b", names(second, "b"), False)
            return Collection("t", mechanism, pair_labels(*fields), fields=fields, minimum_reports=1)
        case SquareWave():
            return Collection("t", mechanism, minimum_reports=1)
        case KRR() | LongitudinalKRR() | HotRappor():
            return Collection("t", mechanism, names(size - 1), other=True, minimum_reports=1)
    return Collection("t", mechanism, candidates=names(size), minimum_reports=1)


def windows_of(collection: Collection, rng: np.random.Generator) -> Iterator[tuple[str, WindowCounts]]:
    """Yield valid counts of a collection, each with what they are."""
    rows, width = collection.cohorts, collection.width
    if isinstance(collection.mechanism, Rappor | HotRappor | OneHotPair):
        for reports in (1, 2, 100, HUGE):
            sizes = np.full(rows, reports, np.int64)
            for name, ones in _bits(rows, width, reports, rng):
                yield f"{name} of {reports}", WindowCounts(ones, sizes, 1, 0)
            uneven = np.ones(rows, np.int64)
            uneven[0] = reports
            ones = rng.integers(0, uneven[:, None] + 1, (rows, width))
            yield f"uneven cohorts of {reports}", WindowCounts(ones, uneven, 1, 0)
            if rows > 1:
                present = np.arange(rows) > 0
                lacking = WindowCounts(ones * present[:, None], uneven * present, 1, 0)
                yield f"no report of a cohort, {reports}", lacking
        return
    for name, cells in _cells(width, rng):
        for row in {0, rows - 1}:
            counts = np.zeros((rows, width), np.int64)
            counts[row] = cells
            yield f"{name}, row {row}", WindowCounts(counts, counts.sum(axis=1)[:rows], 1, 0)


def _bits(rows: int, width: int, reports: int, rng: np.random.Generator) -> Iterator[tuple[str, Counts]]:
    for name, ones in (("none", 0), ("all", reports), ("half", reports // 2), ("one", 1)):
        yield name, np.full((rows, width), ones, np.int64)
    alternating = np.zeros((rows, width), np.int64)
    alternating[:, ::2] = reports
    yield "alternating", alternating
    single = np.zeros((rows, width), np.int64)
    single[0, 0] = reports
    yield "a single bit", single
    yield "all but a single bit", reports - single
    yield "random", rng.integers(0, reports + 1, (rows, width))


def _cells(width: int, rng: np.random.Generator) -> Iterator[tuple[str, Counts]]:
    place = np.arange(width)
    for cell in sorted({0, width // 2, width - 1}):
        for reports in (1, 2, 100, HUGE):
            yield f"all {reports} in cell {cell}", np.where(place == cell, reports, 0)
    yield "ones", np.ones(width, np.int64)
    yield "alternating 0 and 1", place % 2
    yield "alternating 0 and 1000", place % 2 * 1000
    yield "even and huge", np.full(width, HUGE // width)
    yield "huge and ones", np.where(place == 0, HUGE, 1)
    yield "huge and one report", np.where(place == 0, HUGE, np.where(place == width - 1, 1, 0))
    yield "both ends", np.where((place == 0) | (place == width - 1), 50, 0)
    yield "ascending", place + 1
    yield "halving", (100 * 0.5 ** np.minimum(place, 60)).astype(np.int64)
    for number in range(3):
        yield f"random {number}", np.bincount(rng.integers(width, size=100), minlength=width)
        yield f"sparse {number}", rng.multinomial(100, rng.dirichlet(np.full(width, 0.02))).astype(np.int64)
