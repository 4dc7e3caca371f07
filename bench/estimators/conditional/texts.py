"""Bloom RAPPOR, local hashing and prefix trees with candidates, one window."""

from collections.abc import Callable

import numpy as np

from bench.estimators.conditional.buckets import bit_probabilities, both_epsilons
from bench.estimators.conditional.fixed_clients import VALUES, held_texts, listed_shares
from bench.estimators.conditional.judging import Measured, Run
from bench.estimators.conditional.measuring import estimated, window_of
from bench.estimators.populations import Counts, bit_counts, buckets_of, fixed_counts, spread_evenly
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.rappor import Rappor

BITS, HASHES = 128, 2
#: Candidates of local hashing, and counters: a quarter of the default, which take a quarter of the time.
CANDIDATES, COUNTERS = 200, 1 << 14
LENGTHS = (2, 4, 12)


def bloom_of(epsilon: float, cohorts: int) -> Rappor:
    """Bloom RAPPOR of 128 bits and 2 hashes, without a permanent step."""
    return Rappor.from_probabilities(BITS, HASHES, cohorts, 0.0, *bit_probabilities(epsilon, HASHES))


def local_hash_of(epsilon: float) -> LocalHash:
    """Local hashing with `COUNTERS`."""
    buckets = LocalHash.from_epsilon(epsilon).hash_buckets
    return LocalHash.from_epsilon(epsilon, LocalHash.whole_blocks(COUNTERS // buckets, buckets))


def longitudinal_hash_of(epsilon: float) -> LongitudinalHash:
    """Longitudinal local hashing of default size."""
    return LongitudinalHash.from_epsilons(*both_epsilons(epsilon))


def tree_of(epsilon: float) -> PrefixTree:
    """A prefix tree of three levels."""
    return PrefixTree(LENGTHS, local_hash_of(epsilon))


def bloom_run(mechanism: Rappor, population: str, reports: int) -> Run:
    """One window of Bloom RAPPOR; clients choose cohorts anew."""
    counts, texts, candidates = held_texts(population, reports, VALUES)
    collection = Collection("table", mechanism, candidates=candidates)
    truth = listed_shares(counts, texts, candidates)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        window = window_of(*bit_counts(counts, list(texts), mechanism, rng))
        return estimated(collection, window, *truth)

    return run


def hashed_run(mechanism: LocalHash | LongitudinalHash, population: str, reports: int) -> Run:
    """One window of local hashing, with the functions of one collection; clients choose theirs anew."""
    counts, texts, candidates = held_texts(population, reports, CANDIDATES)
    collection = Collection("table", mechanism, candidates=candidates)
    truth, draw = listed_shares(counts, texts, candidates), hashed_drawing(mechanism, collection, texts)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        return estimated(collection, window_of(draw(counts, rng)), *truth)

    return run


def hashed_drawing(
    mechanism: FunctionPool, collection: Collection, texts: tuple[str, ...]
) -> Callable[[Counts, np.random.Generator], Counts]:
    """Return what draws reports by function and bucket, int64 (C g,), of so many clients of each text."""
    functions = hash_functions_of(mechanism, collection.hash_key)
    buckets = buckets_of(functions.words(list(texts)), functions)
    return lambda counts, rng: fixed_counts(counts, buckets, mechanism, rng)


def tree_run(mechanism: PrefixTree, population: str, reports: int) -> Run:
    """One window of a prefix tree; clients choose levels anew. Only the last level's reports are of texts."""
    counts, texts, candidates = held_texts(population, reports, CANDIDATES)
    collection = Collection("table", mechanism, candidates=candidates)
    functions, last = hash_functions_of(mechanism.oracle, collection.hash_key), len(LENGTHS) - 1
    words = mechanism.words([text.encode() for text in texts], last, functions)
    buckets, truth = buckets_of(words, functions), listed_shares(counts, texts, candidates)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        drawn = rng.binomial(counts, 1 / len(LENGTHS))
        others = spread_evenly(int((counts - drawn).sum()), last * mechanism.width, rng)
        rows = np.vstack([others.reshape(last, -1), fixed_counts(drawn, buckets, mechanism.oracle, rng)])
        return estimated(collection, window_of(rows, rows.sum(axis=1)), *truth)

    return run
