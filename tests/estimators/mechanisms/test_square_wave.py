"""Square Wave's thresholds never exceed the declared epsilon, and its cells cover the range."""

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.square_wave import LARGEST_STEPS, SquareWave, best_half_width
from tests.estimators.mechanisms.test_krr import within
from tests.support.messages import PinMessages

WORDS = 1 << 64


def shares(cells: int) -> list[Fraction]:
    """Probability of each of this many cells by multiply-shift of a 64-bit word."""
    starts = [-(-number * WORDS // cells) for number in range(cells + 1)]
    return [Fraction(end - start, WORDS) for start, end in pairwise(starts)]


def exact_channel(mechanism: SquareWave) -> list[list[Fraction]]:
    """P(report y | truth x) in row y, from the definition: near cells by one word, far ones by another."""
    is_near = Fraction(mechanism.threshold, WORDS)
    columns = []
    for truth in range(mechanism.steps):
        near, far = iter(shares(mechanism.near)), iter(shares(mechanism.far))
        columns.append(
            [
                is_near * next(near) if truth <= cell < truth + mechanism.near else (1 - is_near) * next(far)
                for cell in range(mechanism.width)
            ]
        )
    return [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.slow
@given(st.integers(4, 24), st.floats(0.01, 16))
@example(4, 16.0)
@example(24, 0.01)
def test_no_report_reveals_more_than_epsilon(steps: int, epsilon: float) -> None:
    mechanism = SquareWave.from_epsilon(0, 1, steps, epsilon)
    channel = exact_channel(mechanism)
    assert all(sum(column) == 1 for column in zip(*channel, strict=True))
    worst = max(max(row) / min(row) for row in channel)
    assert within(worst, mechanism.epsilon)
    assert mechanism.epsilon <= epsilon


@pytest.mark.slow
@given(st.integers(4, LARGEST_STEPS), st.floats(1e-6, 16))
@example(LARGEST_STEPS, 1e-6)
def test_threshold_is_the_largest_within_epsilon(steps: int, epsilon: float) -> None:
    mechanism = SquareWave.from_epsilon(0, 1, steps, epsilon)

    def bound(threshold: int) -> Fraction:
        return Fraction(
            threshold * max(shares(mechanism.near)), (WORDS - threshold) * min(shares(mechanism.far))
        )

    assert within(bound(mechanism.threshold), epsilon)
    assert not within(bound(mechanism.threshold + 1), epsilon)
    assert within(bound(mechanism.threshold), mechanism.epsilon)
    assert not within(bound(mechanism.threshold), math.nextafter(mechanism.epsilon, 0))


def test_channel_is_the_exact_one() -> None:
    mechanism = SquareWave.from_epsilon(0, 1, 16, 1.5)
    exact = np.array(exact_channel(mechanism)).astype(np.float64)
    np.testing.assert_allclose(mechanism.channel, exact, rtol=1e-14)
    assert mechanism.channel.shape == (mechanism.width, 16)
    assert mechanism.contrast == pytest.approx(mechanism.p - mechanism.q, rel=1e-14)
    assert mechanism.p / mechanism.q == pytest.approx(math.exp(1.5), rel=1e-12)


def test_without_neighbours_it_is_krr() -> None:
    mechanism = SquareWave.from_epsilon(0, 1, 16, 8)
    assert mechanism.half_width == 0
    assert mechanism.threshold == KRR.from_epsilon(16, 8).threshold
    assert mechanism.epsilon == KRR.from_epsilon(16, 8).epsilon


@pytest.mark.parametrize(("epsilon", "half_width"), [(0.5, 92), (1, 66), (2, 33), (4, 8)])
def test_half_width_is_the_published_one(epsilon: float, half_width: int) -> None:
    """Of 256 steps, rounded; as fractions of the range .3582, .2561, .1293 and .0304."""
    assert SquareWave.from_epsilon(0, 1, 256, epsilon).half_width == half_width


def test_half_width_has_no_jump_where_its_series_begins() -> None:
    below, above = best_half_width(0.99e-4), best_half_width(1.01e-4)
    assert below > above
    assert below == pytest.approx(above, abs=1e-6)


def test_cells_cover_the_range_and_end_values_take_what_is_beyond() -> None:
    mechanism = SquareWave.from_epsilon(-10, 30, 4, 1)
    numbers = np.array([-math.inf, -1e308, -10, -0.01, 0, 9.99, 10, 29.9, 30, 1e308, math.inf])
    assert mechanism.cells(numbers).tolist() == [0, 0, 0, 0, 1, 1, 2, 3, 3, 3, 3]
    assert mechanism.edges.tolist() == [-10, 0, 10, 20, 30]


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300), st.floats(0, 1))
def test_every_number_is_in_its_cell(one: float, other: float, share: float) -> None:
    low, high = min(one, other), max(one, other)
    try:
        mechanism = SquareWave.from_epsilon(low, high, 256, 1)
    except ValueError:
        return
    number = min(high, low * (1 - share) + high * share)
    (cell,) = mechanism.cells(np.array([number])).tolist()
    slack = (high - low) / 256 * 1e-3
    assert mechanism.edges[cell] - slack <= number <= mechanism.edges[cell + 1] + slack


def test_parameters_are_exact() -> None:
    mechanism = SquareWave.from_epsilon(0.0, 0.1, 16, 1)
    assert mechanism.parameters() == {
        "kind": "number",
        "minimum": "0.0",
        "maximum": "0.1",
        "steps": 16,
        "half_width": mechanism.half_width,
        "threshold": mechanism.threshold,
    }


@pytest.mark.parametrize(("steps", "epsilon"), [(4, 0.5), (40, 1.0), (64, 4.0), (256, 8.0)])
def test_scores_are_unbiased_and_their_noise_is_the_largest_of_all_cells(steps: int, epsilon: float) -> None:
    """The mean of the scores of a cell is its middle; their variance is that of the channel."""
    wave = SquareWave.from_epsilon(0.0, 1.0, steps, epsilon)
    centres = (np.arange(steps) + 0.5) / steps
    np.testing.assert_allclose(wave.channel.T @ wave.scores, centres, atol=1e-9)
    variances = wave.channel.T @ wave.scores**2 - centres**2
    assert wave.most_noise == pytest.approx(math.sqrt(variances.max()))


def test_messages(pin_messages: PinMessages) -> None:
    chosen = SquareWave.from_epsilon
    pin_messages(
        {f"steps is {each}": partial(chosen, 0, 1, each, 1.0) for each in (3, 513)}
        | {
            "minimum is maximum": partial(chosen, 1, 1, 16, 1.0),
            "maximum is infinite": partial(chosen, 0, math.inf, 16, 1.0),
            "a narrow range far from 0": partial(chosen, 1e16, 1e16 + 4, 256, 1.0),
            "a narrow range at 0": partial(chosen, 0, 1e-305, 16, 1.0),
        }
        | {f"epsilon is {each}": partial(chosen, 0, 1, 16, each) for each in (17.0, math.nan, 1e-30)}
        | {
            "half_width is more than steps": partial(SquareWave, 0, 1, 16, 17, 1 << 63),
            "a threshold below chance": partial(SquareWave, 0, 1, 16, 4, 5),
        }
    )
