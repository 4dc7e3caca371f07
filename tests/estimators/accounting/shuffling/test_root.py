"""Roots of monotone functions."""

import math

import pytest

from deniable.estimators.accounting.shuffling.amplification import root


@pytest.mark.parametrize("target", [1e-9, 0.3, 1.0, 7.5, 20.0])
def test_roots_of_a_steep_function_are_found(target: float) -> None:
    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return math.exp(x) - math.exp(target)

    assert root(function, 0.0, 20.0, 1e-9) == pytest.approx(target, abs=1e-8)
    assert len(calls) < 60


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_an_end_may_be_the_root_and_costs_nothing_more(end: float) -> None:
    calls: list[float] = []

    def function(x: float) -> float:
        calls.append(x)
        return x - end

    assert root(function, 0.0, 1.0, 1e-9) == end
    assert calls == [0.0, 1.0]
