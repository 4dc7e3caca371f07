"""Iterative Bayesian update: one step by hand, likelihood, any channel, stopping rule."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.estimators.frequency.ibu import ITERATIONS, TOLERANCE, ibu, ibu_of_channel
from deniable.estimators.mechanisms.krr import KRR
from tests.support.messages import PinMessages

HALF = KRR(4, 1 << 63)  # p = 1/2, q = 1/6
COUNTS = np.array([50, 30, 15, 5])


def test_one_step_by_hand():
    """From 1/4 each, P(report) is 1/4: theta_x = phi_x p + (1 - phi_x) q."""
    update = ibu(COUNTS, HALF, iterations=1)
    np.testing.assert_allclose(update.frequency, COUNTS / 100 / 2 + (1 - COUNTS / 100) / 6, rtol=1e-15)
    assert update.residual == pytest.approx(np.abs(update.frequency - 0.25).sum())
    assert update.iterations == 1


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.integers(0, 100), min_size=2, max_size=6).filter(any), st.floats(0.1, 8))
def test_likelihood_never_falls(counts, epsilon):
    counts = np.array(counts)
    mechanism = KRR.from_epsilon(len(counts), epsilon)
    losses = [
        -counts @ np.log(mechanism.channel @ ibu(counts, mechanism, steps).frequency)
        for steps in range(1, 20)
    ]
    assert np.diff(losses).max() <= 1e-12 * counts.sum()


def test_channel_matrix_gives_the_same_update():
    one, other = ibu(COUNTS, HALF, 50), ibu_of_channel(COUNTS, HALF.channel, 50)
    np.testing.assert_allclose(one.frequency, other.frequency, rtol=1e-12)
    assert one.residual == pytest.approx(other.residual, rel=1e-9)


def test_absent_reports_do_not_divide_by_zero():
    channel = np.array([[0.75, 0.25], [0.25, 0.75], [0.0, 0.0]])
    update = ibu_of_channel(np.array([50, 50, 0]), channel)
    np.testing.assert_allclose(update.frequency, [0.5, 0.5], rtol=1e-12)


def test_stops_at_the_tolerance_or_at_the_number_of_steps():
    assert (ITERATIONS, TOLERANCE) == (10_000, 1e-12)
    early = ibu(COUNTS, HALF, tolerance=1e-3)
    assert early.residual <= 1e-3
    assert ibu(COUNTS, HALF, early.iterations - 1, 0).residual > 1e-3
    assert ibu(COUNTS, HALF, 5, 0).iterations == 5


@pytest.mark.parametrize(
    ("name", "value"), [("iterations", 0), ("tolerance", -1.0), ("tolerance", np.nan), ("tolerance", np.inf)]
)
def test_parameter_out_of_range_is_rejected_for_a_channel(name, value):
    with pytest.raises(ValueError, match=name):
        ibu_of_channel(COUNTS, HALF.channel, **{name: value})


def test_counts_of_wrong_width_are_rejected():
    with pytest.raises(ValueError, match="counts"):
        ibu_of_channel(np.array([1, 2, 3]), HALF.channel)


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {"no iterations": partial(ibu, COUNTS, HALF, iterations=0)}
        | {
            f"tolerance is {each}": partial(ibu, COUNTS, HALF, tolerance=each)
            for each in (-1.0, np.nan, np.inf)
        }
    )
