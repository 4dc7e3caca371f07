"""Epsilon among shuffled reports of which a stated share may be forged."""

import math
from fractions import Fraction

import pytest

from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import ShufflingRefusedError
from deniable.estimators.accounting.shuffling.honest import HonestShuffle
from deniable.estimators.accounting.shuffling.least_pool import least_pool
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from tests.support.messages import PinMessages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shuffled", "forged_share", "honest"),
    [(1000, 0.5, 500), (10_000, 0.1, 9000), (12_345, 0.0, 12_300), (1, 0.5, 1), (7, 0.5, 3), (999, 0.0, 999)],
)
def test_forged_reports_are_not_counted(shuffled: int, forged_share: float, honest: int) -> None:
    shuffle = HonestShuffle.of(KRR.from_epsilon(16, 1.0), 1e-6, forged_share)
    assert shuffle.honest(shuffled) == honest
    assert shuffle.epsilon(shuffled) == shuffled_epsilon(shuffle.blanket, honest, 1e-6)


def test_memoized_reports_are_refused() -> None:
    with pytest.raises(ShufflingRefusedError):
        HonestShuffle.of(LongitudinalKRR.from_epsilons(4, 4.0, 1.0), 1e-6, 0.5, memoized=True)


@pytest.mark.parametrize(("reports", "pools"), [(1000, 4), (5000, 32), (30, 2)])
def test_no_pool_of_reports_spread_by_chance_is_smaller(reports: int, pools: int) -> None:
    """Exactly: the largest number that one pool misses with at most 1e-6 over the pools, by summed terms."""
    least = least_pool(reports, pools)

    def missed(number: int) -> Fraction:
        terms = (math.comb(reports, each) * (pools - 1) ** (reports - each) for each in range(number))
        return Fraction(pools * sum(terms), pools**reports)

    assert missed(least) <= Fraction(1, 10**6) < missed(least + 1)


@pytest.mark.parametrize(("reports", "pools", "least"), [(5, 1, 5), (1, 4, 0), (1000, 4, 183)])
def test_one_pool_has_all_and_few_reports_may_miss_one(reports: int, pools: int, least: int) -> None:
    assert least_pool(reports, pools) == least


def test_many_reports_are_spread_nearly_evenly() -> None:
    assert 0.9999 < least_pool(10**12, 8) / (10**12 / 8) <= 1


def test_several_reports_of_a_client_in_one_shuffle_are_refused(pin_messages: PinMessages) -> None:
    pin_messages(
        {
            "several reports of a client in one shuffle": lambda: HonestShuffle.of(
                KRR.from_epsilon(16, 1.0), 1e-6, 0.5, reports_per_window=2
            )
        }
    )
