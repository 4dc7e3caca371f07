"""Candidates that share functions with a frequent unlisted string are held where few reports came."""

import numpy as np
import pytest

from bench.estimators.populations import buckets_of, fixed_counts
from estimators.decoding.hashed.decode import decode_hashed
from estimators.mechanisms.hashing.hash_functions import hash_functions_of
from estimators.mechanisms.hashing.local_hash import LocalHash
from tests.support.estimators.simulation import generator

KEY, RUNS = 4, 40
HELD = np.array([400, 120, 70, 50, 30, 30, 20, 20, 10, 10, 10, 10, 10, 10])


@pytest.mark.slow
def test_candidates_that_collide_most_are_held() -> None:
    """1,000 reports at epsilon 8, 200 of one unlisted string; the 10 of 400 candidates that it hits most.

    40 runs with a fixed seed. Defect caught: a variance for collisions, without a shift, holds the worst of
    them in 73 %.
    """
    mechanism = LocalHash.from_epsilon(8.0, 65)
    functions = hash_functions_of(mechanism, KEY)
    listed = [f"listed {number}" for number in range(len(HELD))]
    absent = [f"absent {number}" for number in range(400)]
    buckets = buckets_of(functions.words([*listed, "stranger", *absent]), functions)
    stranger = len(HELD)
    shared = (buckets[stranger + 1 :] == buckets[stranger]).sum(axis=1)
    hit = [absent[place] for place in np.argsort(-shared, kind="stable")[:10]]
    rng, held = generator(4), []
    for _ in range(RUNS):
        counts = fixed_counts(np.append(HELD, 200), buckets[: stranger + 1], mechanism, rng)
        held.append(decode_hashed(counts, [*listed, *hit], mechanism, KEY).low[stranger:] == 0)
    assert np.mean(held, axis=0).min() >= 0.93
