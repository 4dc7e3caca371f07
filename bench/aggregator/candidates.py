"""Time and memory to estimate a RAPPOR window, by number of candidates."""

import time
import tracemalloc

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import round_to_counts, zipf_shares
from bench.sections import ResultRow, Section
from deniable.estimators.decoding.bloom import decode
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.mechanisms.rappor import Rappor

ABOUT = "Estimating a window of RAPPOR, 8 cohorts of 128 bits."
CANDIDATES = (100, 1000, 10_000, 100_000)
REPORTS = 1_000_000
HELD = 100  # candidates that clients hold
SEED = 1


def window(
    words: list[str], mechanism: Rappor, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bit counts, int64 (cohorts, bits), and cohort sizes, for reports of the first words."""
    truth = round_to_counts(zipf_shares(len(words), 1.0), REPORTS)
    clients = rng.multinomial(truth, np.full(mechanism.cohorts, 1 / mechanism.cohorts))
    sizes = clients.sum(axis=0)
    sets = bloom_design(words, mechanism).toarray().reshape(mechanism.cohorts, mechanism.bits, -1)
    ones = np.einsum("cbv,vc->cb", sets, clients).astype(np.int64)
    zeros = sizes[:, None] - ones
    return rng.binomial(ones, mechanism.q_star) + rng.binomial(zeros, mechanism.p_star), sizes


def measure(candidates: int) -> ResultRow:
    """Peak memory of an estimate, and the time of a second one."""
    mechanism = Rappor.from_probabilities(bits=128, hashes=2, cohorts=8, f=0.25, p=0.35, q=0.65)
    words = [f"word-{number}" for number in range(candidates)]
    counts, sizes = window(words[:HELD], mechanism, np.random.default_rng(SEED))
    tracemalloc.start()
    decode(counts, sizes, words, mechanism)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    began = time.perf_counter()
    decode(counts, sizes, words, mechanism)
    took = time.perf_counter() - began
    return {
        "candidates": candidates,
        "seconds": round(took, 3),
        "memory at most, MiB": round(most / 2**20, 1),
    }


CASES = {"candidates": lambda: Section(ABOUT, [measure(each) for each in CANDIDATES])}
