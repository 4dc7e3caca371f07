"""The table of what pairs cost: known constants of one-hot, and products where epsilon is split."""

import math

import numpy as np
import pytest

from bench.estimators.pairs.costs import count_bit_pairs, estimate_times
from bench.estimators.pairs.mechanisms import EPSILONS, SIZES, costs_of, mechanisms


def test_costs_are_those_of_the_formulas():
    found = costs_of(17, 105, 1.0)
    bit = 4 * math.e / math.expm1(1) ** 2
    half = 4 * math.exp(0.5) / math.expm1(0.5) ** 2
    assert found["one-hot-pair"].pair == pytest.approx(bit, rel=1e-6)
    assert found["one-hot-pair"].first == pytest.approx(105 * bit, rel=1e-6)
    assert found["one-hot of each field"].pair == pytest.approx(half**2, rel=1e-6)
    assert found["k-rr-pair"].second == pytest.approx((103 + math.exp(0.5)) / math.expm1(0.5) ** 2, rel=1e-6)
    assert found["thirds of one-hot"].second == pytest.approx(3 * bit, rel=1e-6)


def test_a_bit_for_each_pair_has_less_error_than_split_epsilon_at_all_sizes():
    """And clients divided between three questions have less than one-hot of each field, in all three."""
    for size in SIZES:
        for epsilon in EPSILONS:
            found = costs_of(*size, epsilon)
            thirds, each = found["thirds of one-hot"], found["one-hot of each field"]
            assert found["one-hot-pair"].pair < min(found["k-rr-pair"].pair, each.pair)
            assert thirds.pair < each.pair
            assert thirds.first < each.first


def test_table_has_a_line_for_each_mechanism():
    rows = mechanisms().rows
    assert len(rows) == 8 * len(SIZES) * len(EPSILONS)
    assert list(rows[0].values()) == ["4 x 3", 1, "k-rr-pair", "68.3", "8.67", "6.29"]


def test_counts_of_bit_pairs_are_those_of_a_loop():
    first, second = np.random.default_rng(1).integers(0, 256, (2, 50, 2), np.uint8)
    one, other = (np.unpackbits(each, axis=1, bitorder="little") for each in (first, second))
    expected = [[int((one[:, i] & other[:, j]).sum()) for j in range(16)] for i in range(16)]
    np.testing.assert_array_equal(count_bit_pairs(first, second), expected)


@pytest.mark.slow
def test_times_are_positive():
    assert all(each > 0 for each in estimate_times(3, 2, 1000))
