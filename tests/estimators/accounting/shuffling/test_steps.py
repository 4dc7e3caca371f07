"""Moments of sums of steps against exact ones, and bounds that hold though figures are off by FIGURE."""

from decimal import Decimal, getcontext, localcontext

import numpy as np
import pytest

from deniable.estimators.accounting.shuffling.steps import FIGURE, Steps

SUMS = [
    Steps(np.array([1.5, -0.7, 0.3]), np.array([0.2, 0.3, 0.1]), 7),
    Steps(np.array([0.02, -0.01]), np.array([1e-4, 3e-4]), 10**6),
    Steps(np.array([2.0]), np.array([0.9]), 1),
]
TILTS = (0.01, 0.5, 4.0)


def perturbed(figures, up):
    """The figures as Decimals, larger by a relative FIGURE where `up`, else smaller."""
    return [
        Decimal(figure) * (1 + Decimal(FIGURE if is_up else -FIGURE))
        for figure, is_up in zip(figures.tolist(), up, strict=True)
    ]


@pytest.fixture(autouse=True)
def fifty_digits():
    with localcontext():
        getcontext().prec = 50
        yield


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("steps", SUMS, ids=lambda steps: str(steps.number))
def test_moments_are_those_of_the_tilted_sum(steps, tilt):
    sizes, mass = ([Decimal(figure) for figure in column.tolist()] for column in (steps.sizes, steps.mass))
    weights = [m * (Decimal(tilt) * x).exp() for x, m in zip(sizes, mass, strict=True)]
    moment = 1 - sum(mass) + sum(weights)
    first, second = (
        sum(w * x**power for x, w in zip(sizes, weights, strict=True)) / moment for power in (1, 2)
    )
    assert steps.log_moment(tilt) == pytest.approx(float(steps.number * moment.ln()), rel=1e-11)
    assert steps.slope(tilt) == pytest.approx(float(steps.number * first), rel=1e-11)
    assert steps.variance(tilt) == pytest.approx(float(steps.number * (second - first**2)), rel=1e-11)


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("steps", SUMS, ids=lambda steps: str(steps.number))
def test_log_moment_is_bounded_closely_from_above(steps, tilt):
    """For the worst figures: positive sizes and their masses larger, negative ones nearer to 0 and rarer."""
    up = (steps.sizes > 0).tolist()
    sizes, mass = perturbed(steps.sizes, up), perturbed(steps.mass, up)
    moment = 1 + sum(m * ((Decimal(tilt) * x).exp() - 1) for x, m in zip(sizes, mass, strict=True))
    true = steps.number * moment.ln()
    above = steps.log_moment_above(tilt)
    assert true <= Decimal(above)
    assert above - float(true) < 2e-12 * steps.number


@pytest.mark.parametrize("steps", SUMS, ids=lambda steps: str(steps.number))
def test_probability_of_no_step_is_bounded_closely_from_below(steps):
    true = (1 - sum(perturbed(steps.mass, [True] * len(steps.mass)))) ** steps.number
    low = steps.all_zero()
    assert 0 < Decimal(low) <= true
    assert low == pytest.approx(float(true), rel=1e-8)


def test_steps_that_are_never_0():
    assert Steps(np.array([1.0, -1.0]), np.array([0.5, 0.5]), 3).all_zero() == 0


def power_exactly(sizes, mass, number, z):
    """E[exp(z S)] as two numbers of 50 digits, by the series of exp."""
    real, imaginary = Decimal(1), Decimal(0)
    for x, m in zip(sizes, mass, strict=True):
        a, b = z[0] * x, z[1] * x
        # 60 terms of cos and sin leave less than 1e-50 for |b| <= 8.
        cosine, sine, term = Decimal(0), Decimal(0), Decimal(1)
        for k in range(60):
            if k % 2:
                sine += term if k % 4 == 1 else -term
            else:
                cosine += term if k % 4 == 0 else -term
            term *= b / (k + 1)
        real += m * (a.exp() * cosine - 1)
        imaginary += m * a.exp() * sine
    power = (Decimal(1), Decimal(0))
    for bit in bin(number)[2:]:
        power = (power[0] ** 2 - power[1] ** 2, 2 * power[0] * power[1])
        if bit == "1":
            power = (power[0] * real - power[1] * imaginary, power[0] * imaginary + power[1] * real)
    return power


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("steps", SUMS, ids=lambda steps: str(steps.number))
def test_powers_are_within_their_errors(steps, tilt):
    """As are those of figures that are off in any direction; and the errors are small."""
    t = np.array([0.0, 1e-4, 0.3, 1.0, 2.5])
    log_scale = steps.log_moment(tilt)
    powers, errors = steps.powers(tilt, t, log_scale)
    for place, b in enumerate(t.tolist()):
        for up in (True, False):
            sizes, mass = (perturbed(column, [up] * len(column)) for column in (steps.sizes, steps.mass))
            exact = power_exactly(sizes, mass, steps.number, (Decimal(tilt), Decimal(b)))
            scaled = [part * (-Decimal(log_scale)).exp() for part in exact]
            found = Decimal(powers[place].real), Decimal(powers[place].imag)
            gap = sum((x - y) ** 2 for x, y in zip(scaled, found, strict=True)).sqrt()
            assert gap <= Decimal(errors[place]), (b, up)
    assert errors.max() < 1e-11 * steps.number * (1 + tilt)
