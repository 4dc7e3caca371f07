"""Minima on distributions with a given mass fulfil the conditions of a minimum, whatever cells begin free."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.frequency.numbers.two_masses import PivotedLoss, QuadraticLoss, minimize_with_mass
from deniable.estimators.frequency.simplex import minimize_quadratic
from deniable.estimators.mechanisms.square_wave import SquareWave


def loss_of(seed, steps, epsilon, reports):
    """Chi-square of random counts, half of it, divided by what is expected of equal shares."""
    mechanism = SquareWave.from_epsilon(0.0, 1.0, steps, epsilon)
    rng = np.random.default_rng(seed)
    rates = mechanism.channel @ rng.dirichlet(np.full(steps, 0.3))
    counts = rng.multinomial(reports, rates / rates.sum())
    weighted = mechanism.channel / rates[:, None]
    return QuadraticLoss(reports * mechanism.channel.T @ weighted, weighted.T @ counts)


@given(
    seed=st.integers(0, 10_000),
    steps=st.sampled_from([4, 16, 64]),
    epsilon=st.sampled_from([0.5, 1.0, 4.0]),
    reports=st.sampled_from([10, 1000, 100_000]),
    share=st.floats(0, 1),
    mass=st.floats(0.01, 0.99),
)
def test_no_distribution_with_these_masses_has_less_loss(seed, steps, epsilon, reports, share, mass):
    """The loss is convex: on each side its slope is least, and the same, at all cells that hold something."""
    loss, cells = loss_of(seed, steps, epsilon, reports), round(share * steps)
    base, begin = np.random.default_rng(seed).random((2, steps)) < 0.3
    base[seed % steps] = True
    found, _ = minimize_with_mass(PivotedLoss(loss, base), cells, mass, begin)
    assert found.min() >= 0
    slope = loss.hessian @ found - loss.linear
    for side, wanted in ((slice(0, cells), mass), (slice(cells, steps), 1 - mass)):
        if 0 < cells < steps:
            assert found[side].sum() == pytest.approx(wanted, abs=1e-9)
            used = found[side] > 0
            assert np.ptp(slope[side][used]) < 1e-6 * np.abs(loss.linear).max()
            assert slope[side].min() > slope[side][used].max() - 1e-6 * np.abs(loss.linear).max()
    assert found.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("cells", [0, 1, 20, 63, 64])
@pytest.mark.parametrize("like_base", [True, False])
def test_minimum_of_free_cells_solves_the_equations_of_all_of_them(cells, like_base):
    """The slope of the loss is the same at all free cells of a side, and the sums are as wanted."""
    loss, rng = loss_of(5, 64, 4.0, 10_000), np.random.default_rng(6)
    free, base = rng.random((2, 64)) < 0.5
    free[[0, 63]] = True
    found = PivotedLoss(loss, free if like_base else base).minimum_on_planes(cells, 0.3, free)
    sides = [np.arange(64) < cells, np.arange(64) >= cells]
    sums = np.array([side for side in sides if side.any()], dtype=np.float64)
    planes = np.zeros((len(sums), len(sums)))
    system = np.block([[loss.hessian[np.ix_(free, free)], sums[:, free].T], [sums[:, free], planes]])
    masses = [0.3, 0.7] if len(sums) == 2 else [1.0]
    solution = np.linalg.solve(system, np.append(loss.linear[free], masses))
    np.testing.assert_allclose(found[free], solution[: free.sum()], rtol=1e-6, atol=1e-9)
    slope = loss.hessian[:, free] @ solution[: free.sum()] - loss.linear + solution[free.sum() :] @ sums
    np.testing.assert_allclose(found[~free], slope[~free], rtol=1e-6, atol=1e-6 * np.abs(loss.linear).max())


@pytest.mark.parametrize("cells", [0, 64])
def test_one_side_alone_is_the_simplex(cells):
    loss, base = loss_of(3, 64, 1.0, 10_000), np.arange(64) % 8 == 0
    found, free = minimize_with_mass(PivotedLoss(loss, base), cells, 0.5, np.ones(64, np.bool_))
    other = minimize_quadratic(loss.hessian, loss.linear, np.full(64, 1 / 64))
    assert loss.of(found) == pytest.approx(loss.of(other), rel=1e-9)
    assert (found[~free] == 0).all()


def test_a_side_without_free_cells_is_freed():
    loss, begin = loss_of(4, 16, 1.0, 1000), np.zeros(16, np.bool_)
    found, _ = minimize_with_mass(PivotedLoss(loss, ~begin), 8, 0.25, begin)
    assert found[:8].sum() == pytest.approx(0.25)
    assert not begin.any()
