"""The independent-bit likelihood is maximized, with a certified gap."""

import json

import numpy as np
import pytest
from scipy.sparse import hstack

from deniable.estimators.decoding.bloom import first_guess
from deniable.estimators.decoding.design import bloom_design, even_column
from deniable.estimators.decoding.likelihood import BitLikelihood, maximize
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts
from tests.support.paths import VECTORS

CASES = json.loads((VECTORS / "rappor_mle.json").read_text())["cases"]


def likelihood_of(words, counts, sizes, mechanism, background=False):
    ones = np.asarray(counts, float).ravel()
    zeros = np.repeat(np.asarray(sizes, float), mechanism.bits) - ones
    design = bloom_design(words, mechanism)
    if background:
        design = hstack([design, even_column(len(ones), mechanism.hashes / mechanism.bits)], format="csc")
    return BitLikelihood(design, ones, zeros, int(sum(sizes)), mechanism)


def even_start(likelihood):
    columns = likelihood.design.shape[1]
    return np.full(columns, 1 / (columns + 1))


@pytest.mark.parametrize("case", CASES, ids=["three-words", "six-words"])
def test_published_maxima(case):
    parameters = (case[name] for name in ("bits", "hashes", "cohorts", "f", "p", "q"))
    likelihood = likelihood_of(
        case["words"], case["bit_counts"], case["cohort_sizes"], Rappor.from_probabilities(*parameters)
    )
    theta, gap = maximize(likelihood, even_start(likelihood))
    np.testing.assert_allclose(theta, case["mle"], atol=2e-4)
    assert likelihood.value(theta) <= case["mean_nll"] + 1e-9
    assert 0 <= gap <= 1e-12


def test_derivatives_match_finite_differences():
    rng, mechanism = generator(1), Rappor.from_probabilities(32, 2, 4, 0.25, 0.35, 0.65)
    words = [f"word-{i}" for i in range(6)]
    likelihood = likelihood_of(words, *rappor_counts(rng, zipf_counts(6, 5000), words, mechanism), mechanism)
    theta, step = np.full(6, 0.1), 1e-5
    moves = step * np.eye(6)
    slopes = [
        (likelihood.value(theta + move) - likelihood.value(theta - move)) / (2 * step) for move in moves
    ]
    bends = [
        (likelihood.gradient(theta + move) - likelihood.gradient(theta - move)) / (2 * step) for move in moves
    ]
    np.testing.assert_allclose(likelihood.gradient(theta), slopes, atol=1e-7)
    np.testing.assert_allclose(likelihood.hessian(theta), bends, atol=1e-7)


@pytest.mark.parametrize(
    ("bits", "hashes", "cohorts", "f", "p", "q", "words"),
    [
        (128, 2, 8, 0.25, 0.35, 0.65, 305),
        (128, 2, 8, 0.0, 0.01, 0.99, 305),
        (128, 2, 8, 0.0, 1e-6, 1 - 1e-6, 200),
        (8, 16, 2, 0.5, 0.5, 0.75, 10),
        (8, 1, 1, 0.5, 0.5, 0.75, 7),
        (256, 16, 4, 0.99, 0.35, 0.65, 300),
    ],
)
@pytest.mark.parametrize("counts", ["from clients", "random", "all or nothing"])
def test_maximum_is_reached_from_any_counts(bits, hashes, cohorts, f, p, q, words, counts):
    """Even if no theta explains the counts, the certificate is tight and theta is feasible."""
    rng, mechanism = generator(2), Rappor.from_probabilities(bits, hashes, cohorts, f, p, q)
    names = [f"word-{i}" for i in range(words)]
    ones, sizes = rappor_counts(rng, zipf_counts(words, 100_000), names, mechanism)
    if counts == "random":
        ones = rng.integers(0, np.repeat(sizes[:, None], bits, axis=1), endpoint=True)
    elif counts == "all or nothing":
        ones = sizes[:, None] * rng.integers(0, 2, ones.shape)
    likelihood = likelihood_of(names, ones, sizes, mechanism)
    theta, gap = maximize(likelihood, even_start(likelihood))
    assert theta.min() >= 0
    assert theta.sum() <= 1 + 1e-12
    assert gap <= 1e-11


@pytest.mark.parametrize("seed", [0, 44])
def test_last_steps_gain_less_than_rounding(seed):
    """For these counts, a line search that trusts the last digit stops at a gap above 1e-9."""
    mechanism = Rappor.from_probabilities(128, 2, 8, 0.0, 0.01, 0.99)
    sizes = generator(5).multinomial(336_776, np.full(8, 1 / 8))
    rng = generator(seed)
    ones = rng.binomial(np.repeat(sizes, 128), rng.random(1024))
    names = [f"AP{i}" for i in range(305)]
    likelihood = likelihood_of(names, ones, sizes, mechanism, background=True)
    theta, gap = maximize(likelihood, even_start(likelihood))
    assert theta.sum() <= 1 + 1e-12
    assert gap <= 1e-11


def test_maximum_does_not_depend_on_the_start():
    rng, mechanism = generator(3), Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
    names = [f"word-{i}" for i in range(100)]
    ones, sizes = rappor_counts(rng, zipf_counts(100, 100_000), names, mechanism)
    likelihood = likelihood_of(names, ones, sizes, mechanism)
    observed = (ones / sizes[:, None] - mechanism.p_star) / (mechanism.q_star - mechanism.p_star)
    guess = first_guess(likelihood.design, observed.ravel(), sizes)
    theta, _ = maximize(likelihood, even_start(likelihood))
    np.testing.assert_allclose(maximize(likelihood, guess)[0], theta, atol=1e-6)
