"""Exponentials and logarithms are rounded to the safe side, and close to the exact value."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from estimators.mechanisms.directed_rounding import exp_below, log_above
from tests.support.messages import PinMessages


def exact_exp(x: float) -> Decimal:
    with localcontext(prec=90):
        return Decimal(x).exp()


def decimal(fraction: Fraction) -> Decimal:
    with localcontext(prec=90):
        return Decimal(fraction.numerator) / Decimal(fraction.denominator)


@given(st.floats(0, 80))
def test_exp_below_is_a_close_lower_bound(x):
    with localcontext(prec=90):
        shortfall = 1 - decimal(exp_below(x)) / exact_exp(x)
        assert -(Decimal(10) ** -85) <= shortfall < Decimal(2) ** -150


@given(st.integers(1, 1 << 64), st.integers(1, 1 << 64))
def test_log_above_is_the_smallest_upper_bound(numerator, excess):
    ratio = Fraction(numerator + excess, numerator)
    x = log_above(ratio)
    assert exact_exp(x) >= decimal(ratio) > exact_exp(math.nextafter(x, 0))


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {f"x is {each}": partial(exp_below, each) for each in (-1.0, 80.5, math.nan)}
        | {
            "ratio is 1": partial(log_above, Fraction(1)),
            "ratio is 1/2": partial(log_above, Fraction(1, 2)),
            "ratio is 2^101": partial(log_above, Fraction(2) ** 101),
        }
    )
