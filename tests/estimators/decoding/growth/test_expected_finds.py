"""The plan of a prefix tree: as many texts as searches find, and next to nothing at epsilon 1."""

import numpy as np
import pytest

from deniable.estimators.decoding.hashed.growth.expected_finds import ExpectedSearch, expected_finds
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree

LENGTHS = (2, 3, 4, 5, 6)
REPORTS, DIFFERENT = 650_000, 120_000


def tree(epsilon: float) -> PrefixTree:
    return PrefixTree.from_epsilon(LENGTHS, epsilon)


def least_found(mechanism: PrefixTree, reports: int) -> float | None:
    return ExpectedSearch.of_few_texts(mechanism, reports).least_found()


@pytest.mark.parametrize(("epsilon", "found"), [(1.0, 3.1), (2.0, 7.8), (4.0, 24.1)])
def test_the_plan_fits_the_searches_of_the_benchmark(epsilon, found):
    """Measured by 20 searches each (bench/results/strings.md), within a tenth."""
    assert expected_finds(tree(epsilon), REPORTS, DIFFERENT) == pytest.approx(found, rel=0.1)


@pytest.mark.parametrize(
    ("epsilon", "reports", "different", "found"),
    [
        (4.0, 10**7, 1500, 135),
        (4.0, 10**8, 1500, 348),
        (4.0, 10**8, 20_000, 289),
        (2.0, 10**9, 1500, 357),
        (1.0, 10**9, 1500, 181),
    ],
)
def test_the_plan_fits_searches_of_many_reports(epsilon, reports, different, found):
    """Measured by a search each, of random bytes: rarer texts collide, and 512 branches are followed."""
    assert expected_finds(tree(epsilon), reports, different) == pytest.approx(found, rel=0.1)


@pytest.mark.slow
def test_no_number_of_reports_finds_more_texts_than_branches_are_followed():
    for different in (1500, 120_000, 10**7):
        found = [expected_finds(tree(4.0), 10**power, different) for power in range(4, 19, 2)]
        assert found == sorted(found)
        assert 200 < found[-1] <= 512
    assert expected_finds(tree(4.0), 10**12, 300) == pytest.approx(300, abs=0.01)


def test_texts_are_found_half_of_the_time_from_the_least_share_on():
    for epsilon in (1.0, 4.0):
        search = ExpectedSearch.of_ranks(tree(epsilon), REPORTS, DIFFERENT)
        (probability,) = search.probability_found(np.array([search.least_found()]))
        assert probability == pytest.approx(0.5, abs=1e-6)


def test_more_reports_and_fewer_levels_find_rarer_texts():
    assert least_found(tree(1.0), 4 * REPORTS) == pytest.approx(least_found(tree(1.0), REPORTS) / 2, rel=1e-3)
    fewer = PrefixTree.from_epsilon((3, 6), 1.0)
    assert least_found(fewer, REPORTS) < least_found(tree(1.0), REPORTS)


def test_few_reports_find_nothing():
    assert least_found(tree(1.0), 10) is None
    assert expected_finds(tree(1.0), 10, DIFFERENT) < 0.1


def test_expected_finds_depend_smoothly_on_the_number_of_texts_beyond_a_million():
    some, more = (expected_finds(tree(4.0), REPORTS, number) for number in (1_000_000, 1_000_001))
    assert some == pytest.approx(more, rel=1e-6)
