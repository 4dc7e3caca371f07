"""Exponentials and logarithms are rounded to the safe side, and close to the exact value."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from deniable.estimators.mechanisms.directed_rounding import (
    exp_below,
    log_above,
    rounded_up,
    rounded_up_short,
)
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


@given(st.floats(1e-6, 1e6))
def test_figures_are_written_no_lower_than_they_are(figure):
    for written, step in ((rounded_up(figure), 1e-3), (rounded_up_short(figure), 1e-5)):
        assert Fraction(figure) <= Fraction(written) <= Fraction(figure) * (1 + Fraction(step))


def test_a_short_figure_has_no_zeros_at_its_end():
    assert [rounded_up_short(each) for each in (2.0, 1.99999999, 1.00000049)] == ["2", "2", "1.00001"]


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages(
        {f"x is {each}": partial(exp_below, each) for each in (-1.0, 80.5, math.nan)}
        | {
            "ratio is 1": partial(log_above, Fraction(1)),
            "ratio is 1/2": partial(log_above, Fraction(1, 2)),
            "ratio is 2^101": partial(log_above, Fraction(2) ** 101),
        }
    )
