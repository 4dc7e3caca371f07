"""Differences of shares: intervals that cover, and no more false discoveries than stated."""

from functools import partial

import numpy as np
import pytest

from deniable.analysis.differences import SideShares, compare_shares
from deniable.estimators.frequency import krr
from deniable.estimators.mechanisms.krr import KRR
from tests.support.estimators.simulation import generator
from tests.support.messages import PinMessages

RUNS = 2000
VALUES = 16
MECHANISM = KRR.from_epsilon(VALUES, 1.0)
SHARES = np.array([4000, 2500, 1500, 1000, 500, 250, 150, 50, 20, 10, 5, 5, 5, 5, 0, 0]) / 10_000
FALSE_ALARM = 1e-6


def reports_of(
    rng: np.random.Generator, truth: np.ndarray, mechanism: KRR = MECHANISM, runs: int = RUNS
) -> np.ndarray:
    """Counts of k-RR reports (runs, k) of these fixed true counts."""
    channel = np.full((len(truth), len(truth)), mechanism.q) + np.eye(len(truth)) * mechanism.contrast
    return sum(rng.multinomial(n, row / row.sum(), size=runs) for n, row in zip(truth, channel, strict=True))


def side(counts: np.ndarray, mechanism: KRR = MECHANISM) -> SideShares:
    share, reports = krr.inv(counts, mechanism), int(counts.sum())
    return SideShares(share, krr.std_error(share, reports, mechanism), 1 / (reports * mechanism.contrast))


def normal(share: np.ndarray, error: np.ndarray) -> SideShares:
    """Of so many reports that errors are normal."""
    return SideShares(share, error, 1e-9)


FEW = (100, 8.0, 1000, 10_000), (100, 8.0, 1000, 1000), (1000, 8.0, 100, 1000), (10, 4.0, 100, 10_000)


@pytest.mark.all
@pytest.mark.parametrize("shape", ["skewed", "even", "all of one value"])
@pytest.mark.parametrize(("values", "epsilon", "few", "many"), FEW)
def test_few_reports_of_equal_shares_are_not_found_different(
    values: int, epsilon: float, few: int, many: int, shape: str
) -> None:
    """Of 100 runs in each of 12 populations at most 19, the quantile of 1e-6 at a rate of 5 %; seeded.

    Catches errors taken to be normal, which mark a difference in 16 to 48 runs of 100 at 100 values.
    """
    from scipy.stats import binom  # here, since to import it takes half a second

    rng, mechanism, runs = generator(7), KRR.from_epsilon(values, epsilon), 100
    ranks = np.arange(1, values + 1)
    shares = {"skewed": 1 / ranks, "even": np.ones(values), "all of one value": ranks == 1}[shape]
    truth = np.floor(shares / shares.sum() * few).astype(int)
    truth[0] += few - truth.sum()
    sides = [reports_of(rng, truth * (n // few), mechanism, runs) for n in (few, many)]
    found = [compare_shares(side(a, mechanism), side(b, mechanism)) for a, b in zip(*sides, strict=True)]
    assert sum(each.significant.any() for each in found) <= binom.isf(FALSE_ALARM, runs, 0.05)
    held = np.mean([(each.low <= 0) & (each.high >= 0) for each in found], axis=0)
    assert held.min() >= binom.ppf(FALSE_ALARM / values, runs, 0.95) / runs


@pytest.mark.nightly
def test_equal_shares_are_found_different_in_no_more_runs_than_stated() -> None:
    """Of 10,000 and 100,000 reports. Without a true difference each discovery is false.

    Fails by chance in one of a million runs of this test. Catches tests of each value alone, which find a
    difference in half of the runs.
    """
    from scipy.stats import binom  # here, since to import it takes half a second

    rng = generator(11)
    first, second = (reports_of(rng, np.rint(SHARES * n).astype(int)) for n in (10_000, 100_000))
    found = [compare_shares(side(a), side(b)) for a, b in zip(first, second, strict=True)]
    most = int(binom.isf(FALSE_ALARM, RUNS, 0.05))
    assert sum(each.significant.any() for each in found) <= most
    assert sum((each.p_value < 0.05).any() for each in found) > 2 * most


@pytest.mark.nightly
def test_intervals_cover_the_true_difference() -> None:
    """Of every value, in 95 % of runs; by chance outside in one of a million runs of this test.

    A standard error too small by a tenth covers in 92 %, and is caught.
    """
    from scipy.stats import binom  # here, since to import it takes half a second

    rng = generator(5)
    moved = SHARES.copy()
    moved[[0, 2]] += (-0.05, 0.05)
    first, second = (
        reports_of(rng, np.rint(each * n).astype(int)) for each, n in ((SHARES, 20_000), (moved, 40_000))
    )
    covered, narrow = np.zeros(VALUES), np.zeros(VALUES)
    for a, b in zip(first, second, strict=True):
        found = compare_shares(side(a), side(b))
        covered += (found.low <= moved - SHARES) & (moved - SHARES <= found.high)
        narrow += np.abs(found.difference - (moved - SHARES)) <= 1.96 * 0.9 * found.std_error
    low, high = (int(binom.ppf(p, RUNS, 0.95)) for p in (FALSE_ALARM / 32, 1 - FALSE_ALARM / 32))
    assert low <= covered.min()
    assert covered.max() <= high
    assert narrow.min() < low


def test_large_differences_are_found_and_others_not() -> None:
    truth = np.full(VALUES, 1000)
    expected = [
        np.rint(each * MECHANISM.p + (each.sum() - each) * MECHANISM.q).astype(np.int64)
        for each in (truth, np.where(np.arange(VALUES) == 3, 9000, truth))
    ]
    found = compare_shares(*map(side, expected))
    assert found.significant[3]
    assert found.difference[3] == pytest.approx(9000 / 24_000 - 1 / 16, abs=1e-3)
    assert (found.low[3] < found.difference[3], found.difference[3] < found.high[3]) == (True, True)


def test_value_without_a_stated_error_is_never_found() -> None:
    zeros, ones = np.zeros(2), np.ones(2)
    found = compare_shares(normal(zeros, np.array([np.inf, 0.01])), normal(ones, np.full(2, 0.01)))
    assert found.significant.tolist() == [False, True]
    assert (found.low[0], found.high[0], found.p_value[0]) == (-1, 1, 1)


def test_messages(pin_messages: PinMessages) -> None:

    two, three = normal(np.zeros(2), np.ones(2)), normal(np.zeros(3), np.ones(3))
    pin_messages(
        {f"rate is {each}": partial(compare_shares, two, two, each) for each in (0.0, 1.0, -1.0)}
        | {"columns of other lengths": partial(compare_shares, two, three)}
    )
