"""The noise of local hashing beside known collisions, against the exact variance of supports."""

import numpy as np
import pytest

from bench.estimators.populations import buckets_of
from deniable.estimators.decoding.hashed.collisions import noise_of
from deniable.estimators.decoding.hashed.decode import decode_hashed
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.hashing.hash_functions import hash_functions_of
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash

TEXTS = [f"text-{i}" for i in range(40)]
MECHANISMS = (
    LocalHash.from_epsilon(1.0),
    LocalHash.from_epsilon(4.0),
    LongitudinalHash.from_epsilons(8.0, 4.0),
)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_noise_is_that_of_the_functions(mechanism: LocalHash | LongitudinalHash) -> None:
    """Exact, but for 3e-3 of it: the squares of collisions, which are left out."""
    functions = hash_functions_of(mechanism, 7)
    buckets = buckets_of(functions.words(TEXTS), functions)
    share, reports = np.append(0.9, np.full(39, 0.1 / 39)), 1000
    collide = (buckets[:, np.newaxis] == buckets).mean(axis=2)  # of all pairs of texts
    support = mechanism.response.q + mechanism.response.contrast * collide  # P(a report of u supports v)
    exact = np.sqrt((support * (1 - support)).T @ share / reports) / mechanism.contrast
    known = (share @ support - mechanism.miss) / mechanism.contrast - share
    np.testing.assert_allclose(noise_of(share, known, reports, mechanism), exact, rtol=3e-3)
    of_random = Inversion.of_support(mechanism).std_error(share, reports)
    if mechanism == MECHANISMS[2]:
        assert np.abs(of_random / exact - 1).max() > 0.1  # which functions there are matters


def test_noise_without_collisions_is_that_of_random_functions() -> None:
    mechanism, share = MECHANISMS[0], np.array([-0.1, 0.0, 0.3, 1.0])
    found = noise_of(share, np.zeros(4), 1000, mechanism)
    np.testing.assert_allclose(found, Inversion.of_support(mechanism).std_error(share, 1000), rtol=1e-12)


def test_noise_is_at_least_that_of_one_bucket() -> None:
    """However many collisions are missing, each report supports a value with one of its probabilities."""
    mechanism = MECHANISMS[1]
    q = mechanism.response.q
    found = noise_of(np.zeros(1), np.array([-1.0]), 1000, mechanism)
    assert found[0] == pytest.approx(np.sqrt(q * (1 - q) / 1000) / mechanism.contrast)


def test_errors_of_estimates_depend_on_collisions_with_frequent_values() -> None:
    """A text that nobody has, with more collisions, has a larger error: of 39, the one most shifted."""
    mechanism = MECHANISMS[2]
    functions = hash_functions_of(mechanism, 7)
    true = buckets_of(functions.words(TEXTS[:1]), functions)[0]
    counts = np.full(mechanism.width, round(1e6 * mechanism.response.q / mechanism.hash_functions))
    counts[np.arange(mechanism.hash_functions) * mechanism.hash_buckets + true] += round(
        1e6 * mechanism.response.contrast / mechanism.hash_functions
    )
    found = decode_hashed(counts, TEXTS, mechanism, 7)
    assert found.known_collisions is not None
    order = np.argsort(found.known_collisions[1:])
    errors = found.std_error[1:][order]
    assert (np.diff(errors) >= 0).all()
    assert errors[-1] > 1.1 * errors[0]
