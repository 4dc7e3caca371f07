"""Shares joined by inverse variance: exact weights, honest errors, and a test that keeps its rate."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import chdtrc, chdtri, ndtri

from deniable.aggregator.history.inverse_variance import WeightedShares, join_shares
from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR
from tests.support.messages import PinMessages

NONE = math.nan
FALSE_ALARM = 1e-6
RUNS = 20_000
PARTS = ((1.0, 40_000), (2.0, 10_000))  # epsilon and reports before and after a change
SHARES = (0.0, 0.01, 0.3)


def join(
    shares: list[list[float]],
    errors: list[list[float]],
    shared: list[list[float]] | None = None,
    misfit: list[list[float]] | None = None,
) -> WeightedShares:
    given = np.array(errors)
    return join_shares(
        np.array(shares),
        given,
        given if shared is None else np.array(shared),
        np.zeros(given.shape) if misfit is None else np.array(misfit),
    )


def test_weights_are_inverse_variances() -> None:
    found = join([[0.2], [0.3]], [[0.01], [0.02]])
    assert found.share[0] == pytest.approx(0.8 * 0.2 + 0.2 * 0.3)
    assert found.std_error[0] == found.shared_std_error[0] == pytest.approx(1 / math.sqrt(1e4 + 2500))
    assert (found.parts[0], bool(found.significant[0])) == (2, True)
    assert found.p_value[0] == pytest.approx(chdtrc(1, 0.1**2 / (0.01**2 + 0.02**2)))
    assert found.low[0] == pytest.approx(found.share[0] - ndtri(0.975) * found.std_error[0])


def test_value_of_one_part_stays_what_it_is() -> None:
    found = join([[0.2, 0.1], [NONE, 0.1]], [[0.01, 0.01], [math.inf, 0.01]])
    assert (found.share[0], found.std_error[0], found.parts[0]) == (0.2, pytest.approx(0.01), 1)
    assert (found.p_value[0], bool(found.differs[0])) == (1.0, False)


def test_part_without_a_known_error_has_no_weight() -> None:
    found = join([[0.9, 0.9], [0.2, 0.5]], [[math.inf, math.inf], [0.01, math.inf]])
    assert (found.share[0], found.std_error[0]) == (0.2, pytest.approx(0.01))
    assert (found.low[1], found.high[1], found.std_error[1]) == (0.0, 1.0, math.inf)
    assert found.p_value.tolist() == [1.0, 1.0]


def test_errors_that_parts_share_do_not_average_out() -> None:
    """Misfit in the errors of independent reports; of returning clients all permanent noise."""
    found = join([[0.2], [0.2]], [[0.05], [0.05]], [[0.07], [0.09]], [[0.03], [0.03]])
    assert found.std_error[0] == pytest.approx(math.sqrt(0.04**2 / 2 + 0.03**2))
    assert found.shared_std_error[0] == pytest.approx(0.08)
    only_misfit = join([[0.2], [0.2]], [[0.05], [0.05]], misfit=[[0.05], [0.05]])
    assert only_misfit.std_error[0] == pytest.approx(0.05)


def test_different_shares_are_marked() -> None:
    found = join([[0.2, 0.5], [0.3, 0.5]], [[0.01, 0.01], [0.01, 0.01]])
    assert found.differs.tolist() == [True, False]


def test_numbers_without_values_are_joined_to_none() -> None:
    assert join_shares(*(np.empty((2, 0)),) * 4).share.shape == (0,)


def simulated(share: float, seed: int, clip: bool = False) -> tuple[FloatArray, FloatArray]:
    """Estimates of one share before and after a change of epsilon, (2, RUNS), of seeded reports."""
    chance, shares, errors = np.random.default_rng(seed), [], []
    for epsilon, reports in PARTS:
        inversion = Inversion.of_symmetric(KRR.from_epsilon(16, epsilon))
        holders = round(share * reports)
        counts = chance.binomial(holders, inversion.hit, RUNS)
        counts += chance.binomial(reports - holders, inversion.miss, RUNS)
        found = inversion.frequency(counts / reports)
        shares.append(np.maximum(found, 0) if clip else found)
        errors.append(inversion.std_error(found, reports))
    return np.array(shares), np.array(errors)


def joined(share: float, seed: int, clip: bool = False) -> WeightedShares:
    shares, errors = simulated(share, seed, clip)
    return join_shares(shares, errors, errors, np.zeros(shares.shape))


def misses(low: FloatArray, high: FloatArray, share: float) -> int:
    return int(((low > share) | (high < share)).sum())


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_joined_intervals_cover(share: float) -> None:
    """In 20,000 changes at most 5 % of intervals miss, and the mean error is that of the noise.

    The limit is a quantile: a false alarm once in a million. Intervals 6 % too narrow miss 6.5 % and fail it
    with 99.9 %, unless the share is 0, where intervals are one-sided. Shares clipped before they are joined
    are biased where values are rare: the mean shows that.
    """
    from scipy.stats import binom  # here, since to import it takes half a second

    found = joined(share, 1)
    most = binom.isf(FALSE_ALARM, RUNS, 0.05)
    assert misses(found.low, found.high, share) <= most
    bound = -ndtri(FALSE_ALARM / 2) / math.sqrt(RUNS)
    distance = (found.share - share).mean() / found.share.std()
    assert abs(distance) <= bound + 0.02  # of the weights, which depend on shares a little
    if share:
        narrow = 0.94 * (found.high - found.share)
        assert misses(found.share - narrow, found.share + narrow, share) > most
    else:
        clipped = joined(share, 1, clip=True)
        assert (clipped.share - share).mean() / clipped.share.std() > bound + 0.02


def test_equal_shares_differ_at_the_stated_rate() -> None:
    """Of p-values of equal shares 5 % are below 0.05: a false alarm once in a million.

    A test with m degrees instead of m - 1 rejects 1.5 %, and fails.
    """
    from scipy.stats import binom  # here, since to import it takes half a second

    p_values: NDArray[np.float64] = joined(0.3, 2).p_value
    rejected = int((p_values < 0.05).sum())
    least, most = binom.ppf(FALSE_ALARM / 2, RUNS, 0.05), binom.isf(FALSE_ALARM / 2, RUNS, 0.05)
    assert least <= rejected <= most
    statistic = chdtri(1, p_values)
    assert (chdtrc(2, statistic) < 0.05).sum() < least


def test_messages(pin_messages: PinMessages) -> None:
    two, one = np.zeros((1, 2)), np.ones((1, 1))
    pin_messages(
        {
            "more errors than shares": lambda: join_shares(0 * one, two, one, one),
            "a value of no part": lambda: join([[NONE], [NONE]], [[0.1], [0.1]]),
        }
    )
