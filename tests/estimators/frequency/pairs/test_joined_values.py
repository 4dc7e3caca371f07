"""Rare values are joined until every expected pair has 5 reports, by the margins alone."""

import numpy as np
import pytest

from deniable.estimators.frequency.pairs.estimate import independence_test
from deniable.estimators.frequency.pairs.joined_values import joined_sums, joined_values
from tests.support.estimators.simulation import generator


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("reports", [100, 1000, 100_000])
def test_every_pair_of_two_groups_is_expected_in_5_reports(reports, seed):
    shares = np.outer(1 / np.arange(1, 18), 1 / np.arange(1, 31))
    counts = generator(seed).multinomial(reports, (shares / shares.sum()).ravel()).reshape(shares.shape)
    joined = joined_sums(counts, joined_values(counts))
    assert min(joined.shape) >= 2
    assert joined.sum() == reports
    assert joined.sum(axis=1).min() * joined.sum(axis=0).min() / reports >= 5


def test_common_values_stay_alone():
    counts = np.array([[5, 6, 7], [7, 5, 6], [6, 7, 5]])
    rows, columns = joined_values(counts)
    assert rows.tolist() == columns.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(joined_sums(counts, (rows, columns)), counts)


def test_only_the_field_with_rare_values_has_them_joined():
    """60 reports, 20 and 40 in each column: a row must have 15."""
    counts = np.array([[8, 16], [0, 1], [2, 3], [10, 20]])
    rows, columns = joined_values(counts)
    assert (rows.tolist(), columns.tolist()) == ([0, 1, 1, 1], [0, 1])
    np.testing.assert_array_equal(joined_sums(counts, (rows, columns)), [[8, 16], [12, 24]])


def test_tables_with_the_same_margins_have_the_same_groups():
    """A choice by the pairs themselves would let the dependence of the fields decide."""
    one, other = np.array([[9, 0, 1], [0, 9, 1], [1, 1, 0]]), np.array([[4, 5, 1], [5, 4, 1], [1, 1, 0]])
    for mine, theirs in zip(joined_values(one), joined_values(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_field_of_one_group_has_no_test():
    """8 reports: no two groups of both fields have 5 in each pair."""
    test = independence_test(np.array([[4, 0], [0, 4]]))
    assert (test.statistic, test.degrees, test.p_value, test.is_rejected) == (0.0, 0, 1.0, False)


def test_dependence_of_joined_values_is_found():
    """Groups of 3 and 5 rows, and 4 and 6 columns: [[12, 3], [4, 21]], with a chi-square of 16."""
    test = independence_test(np.kron(np.eye(2, dtype=np.int64), np.ones((4, 5), np.int64)))
    assert test.degrees == 1
    assert test.statistic == pytest.approx(16)
    assert test.is_rejected
