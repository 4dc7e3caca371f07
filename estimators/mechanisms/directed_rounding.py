"""Exponentials rounded down and logarithms rounded up, so that a stated epsilon is never too small.

A declared epsilon is an upper bound on the log of a ratio of probabilities, which are exact rationals
(integer thresholds over a power of two). `math.log` may round below the true value; these functions never do.
"""

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction

# Fixed point with 160 fractional bits. Truncating a term loses less than 2^-160, which lowers the sum by at
# most e^x 2^-160. There are fewer than 400 terms for x <= 80, so the sum is below e^x by a factor of less
# than 1 + 2^-151. From one float x >= 2^-80 to the next, e^x grows by a factor above 1 + 2^-134.
_SCALE = 1 << 160

#: Largest relative error of one float operation. Functions of `math` and numpy err by less than 8 UNIT.
UNIT = 2.0**-53


def exp_below(x: float) -> Fraction:
    """Lower bound on e^x, within a factor of 1 + 2^-151: its Taylor series with every term rounded down.

    Parameters
    ----------
    x : exponent in [0, 80]; the float is taken as an exact rational.

    Returns
    -------
    Exact rational, >= 1.

    Raises
    ------
    ValueError if x is outside that range.
    """
    if not 0 <= x <= 80:
        raise ValueError(f"x must be in [0, 80], got {x}")
    numerator, denominator = x.as_integer_ratio()
    total, term, order = 0, _SCALE, 0
    while term:
        total += term
        order += 1
        term = term * numerator // (denominator * order)
    return Fraction(total, _SCALE)


def log_above(ratio: Fraction) -> float:
    """Upper bound on ln(ratio): the smallest float x with `exp_below(x)` >= ratio.

    Parameters
    ----------
    ratio : exact ratio of two probabilities, in [1 + 2^-80, 2^100).

    Returns
    -------
    Nats, > 0.

    Raises
    ------
    ValueError if the ratio is outside that range.
    """
    if not Fraction(1, 1 << 80) <= ratio - 1 < 1 << 100:
        raise ValueError(f"ratio must be in [1 + 2^-80, 2^100), got {ratio}")
    x = math.log1p(float(ratio - 1))
    while exp_below(x) >= ratio:
        x = math.nextafter(x, 0)
    while exp_below(x) < ratio:
        x = math.nextafter(x, math.inf)
    return x


def exp_above(x: float) -> float:
    """Upper bound on e^x, within two floats of it.

    Parameters
    ----------
    x : exponent in [0, 80].

    Raises
    ------
    ValueError if x is outside that range.
    """
    return float_above(exp_below(x) * (1 + Fraction(1, 1 << 150)))


def float_above(exact: Fraction) -> float:
    """Return the smallest float that is not below an exact number."""
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def product_above(factor: int, x: float) -> float:
    """Upper bound on factor times x: their product, rounded up.

    Parameters
    ----------
    factor : integer, >= 0.
    x : finite float, >= 0.
    """
    return float_above(factor * Fraction(x))


def quotient_above(x: float, divisor: float) -> float:
    """Upper bound on x / divisor: their quotient, rounded up; inf for x = inf.

    Parameters
    ----------
    x : >= 0.
    divisor : finite float, > 0.
    """
    return float_above(Fraction(x) / Fraction(divisor)) if math.isfinite(x) else math.inf


def sum_above(*terms: float) -> float:
    """Upper bound on a sum of floats: their sum, rounded up; inf if one is."""
    return float_above(sum(map(Fraction, terms), Fraction())) if all(map(math.isfinite, terms)) else math.inf


def rounded_up(figure: float, digits: int = 4) -> str:
    """Write a figure rounded up to so many digits: a privacy loss is never stated below its true value."""
    return f"{Context(prec=digits, rounding=ROUND_CEILING).create_decimal_from_float(figure):f}"


def rounded_up_short(figure: float) -> str:
    """Write a figure rounded up to six digits, without zeros at its end: 2 for 1.9999999."""
    return f"{float(rounded_up(figure, 6)):g}"
