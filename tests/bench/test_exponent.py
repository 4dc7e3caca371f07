"""The exponent of a noiseless power law is found exactly."""

from functools import partial

import pytest

from bench.comparison.report.exponent import Exponent, exponent
from bench.comparison.report.figure import Line
from tests.support.messages import PinMessages


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_power_law_yields_its_exponent(power: float) -> None:
    sizes = [3, 30, 300]
    found = exponent(sizes, [7 * size**power for size in sizes])
    assert found.value == pytest.approx(power, abs=1e-12)
    assert found.steps == pytest.approx([power, power], abs=1e-12)


def test_noise_moves_the_exponent_as_least_squares_do() -> None:
    """Logarithms to base 10: 0, 1, 2 against 0, 0, 3. Their slope is (0 * -1 + 3 * 1) / 2."""
    found = exponent([1, 10, 100], [1, 1, 1000])
    assert found.value == pytest.approx(1.5)
    assert found.steps == pytest.approx([0, 3])


def test_steps_are_shown_if_there_are_several() -> None:
    assert str(Exponent(1.5, (-0.001, 3.0))) == "1.50 (0.00, 3.00)"
    assert str(Exponent(1.5, (1.5,))) == "1.50"


def test_line_has_exponents_of_time_and_memory() -> None:
    line = Line("values K", "count", [1, 10, 100], [1.0, 10.0, 100.0], [5.0, 5.0, 5.0])
    assert line.time_exponent.value == pytest.approx(1)
    assert line.memory_exponent.value == pytest.approx(0)


def test_messages(pin_messages: PinMessages) -> None:

    pin_messages(
        {
            "one value": partial(exponent, [1], [1.0]),
            "fewer values than sizes": partial(exponent, [1, 2], [1.0]),
            "a value of 0": partial(exponent, [1, 2], [1.0, 0.0]),
            "equal sizes": partial(exponent, [2, 2], [1.0, 1.0]),
        }
    )
