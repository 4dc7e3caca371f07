"""pure-ldp: direct encoding (k-RR), local hashing and RAPPOR, clients and servers, a call for each report."""

from collections.abc import Callable

import numpy as np
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.local_hashing import LHClient
from pure_ldp.frequency_oracles.rappor import RAPPORClient, RAPPORServer

LIBRARY = "pure-ldp"


def _same(index: int) -> int:
    return index


def krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Randomize this many values."""
    client = DEClient(epsilon, k, index_mapper=_same)
    values = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        _ = [client.privatise(value) for value in values]

    return run


def local_hash(count: int, epsilon: float, words: int) -> Callable[[], object]:
    """Optimized local hashing of this many integers, with a seed of 63 bits for each report."""
    client = LHClient(epsilon, words, use_olh=True, index_mapper=_same)
    values = np.random.default_rng(1).integers(words, size=count).tolist()

    def run() -> None:
        _ = [client.privatise(value) for value in values]

    return run


def rappor(
    count: int, bits: int, hashes: int, cohorts: int, words: int, f: float, **_: float
) -> Callable[[], object]:
    """Bloom filters and permanent step for this many values; it has no instantaneous step."""
    hashed = RAPPORServer(f, bits, hashes, words, num_of_cohorts=cohorts).get_hash_funcs()
    client = RAPPORClient(f, bits, hashed, cohorts, index_mapper=_same)
    values = np.random.default_rng(1).integers(words, size=count).tolist()

    def run() -> None:
        _ = [client.privatise(value) for value in values]

    return run


def count_krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Count decoded reports."""
    reports = np.random.default_rng(1).integers(k, size=count).tolist()

    def run() -> None:
        DEServer(epsilon, k, index_mapper=_same).aggregate_all(reports)

    return run


def count_rappor(
    count: int, bits: int, hashes: int, cohorts: int, f: float, **_: float
) -> Callable[[], object]:
    """Count decoded reports, lists of bits as its client returns them, with their cohorts."""
    generator = np.random.default_rng(1)
    rows = generator.integers(2, size=(min(count, 1000), bits)).tolist()
    numbers = generator.integers(cohorts, size=count).tolist()
    reports = [(rows[number % len(rows)], cohort) for number, cohort in enumerate(numbers)]
    server = RAPPORServer(f, bits, hashes, 2, num_of_cohorts=cohorts)

    def run() -> None:
        server.aggregate_all(reports)

    return run


JOBS = {
    "k-RR": krr,
    "local hashing": local_hash,
    "RAPPOR": rappor,
    "count k-RR": count_krr,
    "count RAPPOR": count_rappor,
}
