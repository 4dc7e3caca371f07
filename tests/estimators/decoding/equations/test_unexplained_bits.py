"""Bits that unlisted strings raise are found, others hardly ever."""

import numpy as np
import pytest
from scipy.sparse import hstack

from estimators.decoding.bit_counts import BitCounts
from estimators.decoding.design import bloom_design, even_column
from estimators.decoding.equations.unexplained_bits import find_unexplained
from estimators.mechanisms.rappor import Rappor
from tests.support.estimators.simulation import generator, rappor_counts, zipf_counts

DEMO = Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65)
LISTED = [f"listed-{i}" for i in range(100)]
MODEL = hstack([bloom_design(LISTED, DEMO), even_column(1024, 2 / 128)], format="csc")


def found(rng, listed, strangers, masses):
    held = np.append(zipf_counts(100, listed), masses).astype(np.int64)
    counts = BitCounts(*rappor_counts(rng, held, [*LISTED, *strangers], DEMO), DEMO)
    return find_unexplained(MODEL, counts.rows(MODEL, np.zeros(101)))


@pytest.mark.parametrize("strings", [1, 5])
def test_bits_of_frequent_unlisted_strings_are_found(strings):
    """Each of them raises its bits by at least 9 standard errors; of 1,024 bits, 5 others may be called."""
    strangers = [f"stranger-{i}" for i in range(strings)]
    bits = found(generator(strings), 4_000_000, strangers, [1_000_000 // strings] * strings)
    raised = bloom_design(strangers, DEMO).toarray().any(axis=1)
    assert bits.left_out[raised].all()
    assert bits.left_out[~raised].sum() <= 5
    assert bits.is_incomplete
    assert bits.chi_square_ratio > 5 * bits.limit


def test_a_complete_list_explains_its_bits():
    """40 windows: a bit is called unexplained in at most 1 % of them, so in 6 with probability 1e-6."""
    rng = generator(3)
    windows = [found(rng, 5_000_000, [], []) for _ in range(40)]
    assert sum(bits.left_out.any() for bits in windows) < 6
    assert all(bits.chi_square_ratio < bits.limit for bits in windows)


def test_clients_that_return_do_not_look_like_strings():
    """Residuals of `overlap` times the variance are expected, so nothing is unexplained."""
    held = zipf_counts(100, 100_000)
    once, sizes = rappor_counts(generator(4), held, LISTED, DEMO)
    alone = BitCounts(once * 20, sizes * 20, DEMO)
    assert find_unexplained(MODEL, alone.rows(MODEL, np.zeros(101))).is_incomplete
    permanent = 0.25 * DEMO.p_star / (DEMO.q_star - DEMO.p_star) ** 2 * 2.5
    shared = BitCounts(once * 20, sizes * 20, DEMO, overlap=20.0, permanent_variance=permanent)
    assert not find_unexplained(MODEL, shared.rows(MODEL, np.zeros(101))).is_incomplete


def test_few_degrees_of_freedom_leave_nothing_out():
    small = Rappor.from_probabilities(32, 2, 1, 0.25, 0.35, 0.65)
    design = bloom_design(["a", "b"], small)
    counts = BitCounts(
        *rappor_counts(generator(5), np.array([5, 5, 90]) * 100_000, ["a", "b", "c"], small), small
    )
    bits = find_unexplained(design, counts.rows(design, np.zeros(2)))
    assert not bits.left_out.any()
    assert bits.is_incomplete
