"""Measured variance of local hashing beside its formula."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from bench.estimators.populations import CANDIDATES, LISTED, fixed_counts, held_texts
from bench.sections import ResultRow, Section
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash

EPSILONS = (0.5, 1.0, 2.0, 4.0)
#: With a million, collisions are a twelfth to nine tenths of the variance.
REPORTS = (10_000, 1_000_000)
RUNS = 200
ABOUT = """\
N times the variance of `local-hash` for a value that nobody holds. The formula is 4 e^epsilon /
(e^epsilon - 1)^2, the noise, and N sum f^2 / (C (g - 1)), collisions; its noise is that of the best g,
which need not be a prime number. Each run draws other hash functions. The variance is that of 200 values
that are estimated alone: `decode` takes out the collisions with known frequent values, so its errors are
smaller."""


@dataclass(frozen=True)
class HashVariance:
    """N times the variance of a value that nobody holds: noise, by formula with collisions, and measured.

    `error` is the standard error of `measured`, from the runs.
    """

    epsilon: float
    buckets: int
    functions: int
    reports: int
    noise: float
    formula: float
    measured: float
    error: float

    def row(self) -> ResultRow:
        """Row of the table."""
        figures = {name: f"{getattr(self, name):.4g}" for name in ("noise", "formula", "measured")}
        return {
            "epsilon": self.epsilon,
            "g": self.buckets,
            "C": self.functions,
            "N": self.reports,
            **figures,
            "standard error": f"{self.error:.2g}",
            "measured / formula": f"{self.measured / self.formula:.3f}",
        }


def hash_variance(epsilon: float, reports: int, runs: int = RUNS) -> HashVariance:
    """Simulate one population: 105 values by Zipf's law."""
    mechanism = LocalHash.from_epsilon(epsilon)
    squares = np.array([np.mean(each**2) for each in _estimates(mechanism, reports, runs)])
    odds = np.exp(epsilon)
    noise = float(4 * odds / (odds - 1) ** 2)
    shares = held_texts(reports, 0.0, 0) / reports
    collisions = reports * float(shares @ shares) / (mechanism.hash_functions * (mechanism.hash_buckets - 1))
    return HashVariance(
        epsilon,
        mechanism.hash_buckets,
        mechanism.hash_functions,
        reports,
        noise,
        noise + collisions,
        reports * float(squares.mean()),
        reports * float(squares.std(ddof=1)) / float(np.sqrt(runs)),
    )


def _estimates(mechanism: LocalHash, reports: int, runs: int) -> Iterator[FloatArray]:
    """Yield the estimates of each run, float64 (200,); the truth is 0."""
    rng, held = np.random.default_rng(1), held_texts(reports, 0.0, 0)
    every = np.arange(mechanism.hash_functions)
    for run in range(runs):
        functions = hash_functions_of.__wrapped__(mechanism, run)  # a key is used once: not kept
        words = functions.words(CANDIDATES)
        found = [functions.buckets(word.repeat(len(every)), every) for word in words]
        buckets = np.stack(found).astype(np.uint8)
        counts = fixed_counts(held, buckets[:LISTED], mechanism, rng)
        supports = counts[every * mechanism.hash_buckets + buckets[LISTED:]].sum(axis=1)
        yield (supports / reports - mechanism.miss) / mechanism.contrast


def variances(runs: int = RUNS) -> Section:
    """Measure all cells."""
    return Section(ABOUT, [hash_variance(*cell, runs).row() for cell in product(EPSILONS, REPORTS)])


CASES = {"variance of local hashing": variances}
