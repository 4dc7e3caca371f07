"""The initial guess is near the least squares of each cohort, and a feasible start for `maximize`."""

import numpy as np
import pytest

from deniable.estimators.decoding.bloom import first_guess
from deniable.estimators.decoding.design import bloom_design
from deniable.estimators.mechanisms.rappor import Rappor
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts

MECHANISM = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
WORDS = [f"word-{i}" for i in range(40)]


def observed_shares(ones, sizes):
    shares = ones / np.maximum(sizes, 1)[:, None]
    return ((shares - MECHANISM.p_star) / (MECHANISM.q_star - MECHANISM.p_star)).ravel()


def test_exact_shares_yield_the_truth():
    truth = zipf_counts(40, 1000) / 1000
    design = bloom_design(WORDS, MECHANISM)
    np.testing.assert_allclose(first_guess(design, design @ truth, np.full(8, 10)), truth, atol=5e-3)


def test_guess_averages_non_negative_least_squares_of_cohorts():
    """After 30 steps it is within 0.005 of an exact solver's size-weighted average; one cohort is empty."""
    from scipy.optimize import nnls  # here, since to import it takes a fifth of a second

    ones, sizes = rappor_counts(generator(1), zipf_counts(40, 200_000), WORDS, MECHANISM)
    ones[3], sizes[3] = 0, 0
    design, shares = bloom_design(WORDS, MECHANISM), observed_shares(ones, sizes)
    exact = [
        nnls(block, part)[0]
        for block, part in zip(design.toarray().reshape(8, 128, 40), shares.reshape(8, 128), strict=True)
    ]
    expected = np.average(exact, axis=0, weights=sizes)
    guess = first_guess(design, shares, sizes)
    np.testing.assert_allclose(guess, expected / max(1, expected.sum()), atol=5e-3)


@pytest.mark.parametrize("seed", range(5))
def test_any_shares_give_a_feasible_start(seed):
    shares = generator(seed).normal(scale=5, size=1024)
    guess = first_guess(bloom_design(WORDS, MECHANISM), shares, np.full(8, 10))
    assert guess.min() >= 0
    assert guess.sum() <= 1 + 1e-12
