"""Cells that may hold a quantile are those that the likelihood ratio accepts, found without trying all."""

import numpy as np
import pytest

from deniable.estimators.frequency.numbers.quantile_cells import LARGEST_ROOT, quantile_cells
from deniable.estimators.frequency.numbers.two_masses import PivotedLoss, QuadraticLoss, minimize_with_mass
from deniable.estimators.mechanisms.square_wave import SquareWave

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def loss_of(shares, reports, mechanism, rng=None):
    """Half the chi-square of reports, expected ones or drawn, of these true shares."""
    rates = mechanism.channel @ shares
    rates /= rates.sum()
    seen = rates if rng is None else rng.multinomial(reports, rates) / reports
    weighted = reports * mechanism.channel / rates[:, None]
    return QuadraticLoss(mechanism.channel.T @ weighted, weighted.T @ seen)


def accepted(loss, level):
    """First and last cell by trying every number of cells."""
    steps, every = len(loss.linear), np.ones(len(loss.linear), np.bool_)
    pivoted = PivotedLoss(loss, np.arange(steps) % 3 == 0)
    likeliest, _ = minimize_with_mass(pivoted, 0, 0, every)
    below = np.append(0, likeliest.cumsum())

    def ratio(cells):
        return 2 * (loss.of(minimize_with_mass(pivoted, cells, level, every)[0]) - loss.of(likeliest))

    limit = LARGEST_ROOT**2
    first = next(n for n in range(1, steps + 1) if below[n] >= level or (n < steps and ratio(n) <= limit))
    last = next(n for n in range(steps - 1, -1, -1) if below[n] <= level or ratio(n) <= limit)
    return first - 1, last


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
@pytest.mark.parametrize("reports", [30, 3000, 300_000])
def test_all_accepted_cells_and_no_others_are_between(epsilon, reports):
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 32, epsilon)
    rng = np.random.default_rng(round(10 * epsilon) + reports)
    for _ in range(3):
        loss = loss_of(rng.dirichlet(np.full(32, 0.4)), reports, mechanism, rng)
        assert quantile_cells(loss, LEVELS) == [accepted(loss, level) for level in LEVELS]


def test_exact_reports_give_the_cells_of_the_truth():
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 16, 2.0)
    shares = np.zeros(16)
    shares[[2, 9]] = 0.3, 0.7
    found = quantile_cells(loss_of(shares, 10**12, mechanism), LEVELS)
    assert found == [(2, 2), (2, 2), (9, 9), (9, 9), (9, 9)]


def test_a_few_reports_leave_everything_open():
    mechanism = SquareWave.from_epsilon(0.0, 1.0, 16, 0.5)
    loss = loss_of(np.full(16, 1 / 16), 1, mechanism, np.random.default_rng(1))
    assert quantile_cells(loss, LEVELS) == [(0, 15)] * len(LEVELS)
