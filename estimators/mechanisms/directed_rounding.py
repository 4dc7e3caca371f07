"""Exponentials and logarithms rounded to the side that keeps a privacy promise.

An epsilon that is declared bounds a ratio of probabilities from above, and those probabilities are exact
rationals (integer thresholds over a power of two). `math.log` may land a hair below the truth; here every
rounding is in a known direction.
"""

import math
from fractions import Fraction

# Fixed point with 160 fractional bits. Cutting a term by less than 2^-160 costs at most e^x times that in the
# sum, and there are under 400 terms for x <= 80: the sum is below e^x by a factor of less than 1 + 2^-151.
# From one float x >= 2^-80 to the next, e^x grows by a factor above 1 + 2^-134.
_SCALE = 1 << 160

#: Relative error of one rounding of a float. Functions of `math` and numpy err by less than 8 of them.
UNIT = 2.0**-53


def exp_below(x: float) -> Fraction:
    """Lower bound of e^x, within a factor of 1 + 2^-151: the series of e^x, every term rounded down.

    Parameters
    ----------
    x : exponent in [0, 80], taken as the exact rational that the float is.

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
    """Upper bound of ln(ratio): the smallest float x that `exp_below` proves not to be below it.

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
