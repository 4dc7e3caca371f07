"""The search finds the same number as a linear scan, with few evaluations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.accounting.bisection import largest_within, last_before


@given(st.lists(st.floats(0, 10), min_size=1, max_size=200), st.floats(0, 10), st.data())
def test_search_matches_a_linear_scan(rises, budget, data):
    """For any non-decreasing function, including ones with jumps and plateaus."""
    figures = [0.0, *sorted(rises)]
    fitting = [number for number, figure in enumerate(figures) if figure <= budget]
    first = data.draw(st.sampled_from(fitting))
    last = data.draw(st.integers(first, len(rises)))
    assert largest_within(figures.__getitem__, budget, first, last) == min(fitting[-1], last)
    if fitting[-1] < len(rises):
        assert last_before(figures.__getitem__, budget, first, len(rises)) == fitting[-1]


@pytest.mark.parametrize("power", [0.4, 1.0, 2.0])
@pytest.mark.parametrize("answer", [0, 1, 17, 3000, 99_999, 100_000])
def test_smooth_figure_is_evaluated_rarely(power, answer):
    """Growing by half reaches 100,000 in 27 steps; at most 12 follow, none above 1.5 times the answer."""
    asked = []

    def figure(number: int) -> float:
        asked.append(number)
        return number**power

    assert largest_within(figure, (answer + 0.5) ** power, 0, 100_000) == answer
    assert len(asked) <= 40
    assert max(asked) <= max(2, math.ceil(1.5 * (answer + 1)))


def test_step_function_is_solved_by_halving():
    asked = []

    def figure(number: int) -> float:
        asked.append(number)
        return 0.0 if number < 70_000 else 1e300

    assert last_before(figure, 1.0, 0, 100_000) == 69_999
    assert len(asked) <= 60
