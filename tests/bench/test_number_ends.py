"""Numbers at an end of the range: the smoothed mean is biased, the unbiased one beside it is not."""

import numpy as np
import pytest

from bench.estimators.numbers.number_ends import SHAPES, numbers_at_an_end, piecewise_error, row_of


@pytest.mark.all
def test_the_unbiased_mean_is_closer_where_numbers_are_at_an_end():
    """Of 5 runs; their mean biases differ by a factor of 30 in 25."""
    row = row_of(SHAPES[0], 1.0, 100_000, 5)
    value, bias, unbiased = (float(row[name]) for name in ("`value`", "its bias", "`unbiased`"))
    assert bias == value > 0.004
    assert unbiased < value


def test_shapes_have_the_numbers_that_they_are_named_for():
    exponential, maximum, minimum = (numbers_at_an_end(shape, 20_000) for shape in SHAPES)
    assert exponential.mean() == pytest.approx(0.02, abs=0.001)
    assert (maximum == 1).mean() == pytest.approx(0.1, abs=0.015)
    assert not minimum.any()


def test_piecewise_error_follows_from_its_variance():
    """At epsilon 2 ln 2 and the middle of the range the variance is 5 / 3 on [-1, 1]."""
    found = piecewise_error(np.full(100, 0.5), 2 * np.log(2))
    assert found == pytest.approx(np.sqrt(2 / np.pi * (5 / 3) / 100) / 2)
