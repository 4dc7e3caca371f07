"""Which shares differ between two sets of reports: differences with intervals, and a test of all together.

Rule: it compares unconstrained estimates, which are unbiased. Most likely shares are not: what they take from
values below 0 they take from all others, and more where fewer reports came, so equal shares would differ.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.frequency.estimate import QUANTILE_975
from estimators.frequency.significance import FALSE_DISCOVERY_RATE, benjamini_hochberg, normal_tail


@dataclass(frozen=True, eq=False)
class Differences:
    """Second share minus first one, of n values.

    Parameters
    ----------
    first, second : the shares compared, float64 (n,), fractions of all reports; may be negative or above 1.
    difference, std_error : float64 (n,), fractions.
    low, high : 95 % intervals of each difference alone, float64 (n,), within [-1, 1].
    p_value : of each value's test that its shares are equal, two-sided, float64 (n,), in [0, 1].
    significant : bool (n,); of those that are True, an expected share of at most the stated rate is false.
    """

    first: FloatArray
    second: FloatArray
    difference: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    p_value: FloatArray
    significant: NDArray[np.bool_]


def compare_shares(
    first: tuple[FloatArray, FloatArray],
    second: tuple[FloatArray, FloatArray],
    rate: float = FALSE_DISCOVERY_RATE,
) -> Differences:
    """Test every value's difference, with Benjamini-Hochberg for all of them together.

    The two sets are of different reports, so the variances of a difference add up. Errors are those of the
    randomizers' noise alone: a difference is one between those who reported, whoever else there is. Where
    other people reported in each set, shares may differ although nobody changed, which the rate leaves out.

    Parameters
    ----------
    first, second : unbiased shares and their standard errors, float64 (n,) each; an error may be inf.
    rate : false-discovery rate, in (0, 1).

    Raises
    ------
    ValueError if rate is out of range or lengths differ.
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1), got {rate}")
    if len({len(each) for each in (*first, *second)}) != 1:
        raise ValueError(f"shares and errors must have one length, got {[len(x) for x in (*first, *second)]}")
    difference, std_error = second[0] - first[0], np.hypot(first[1], second[1])
    p_value = np.minimum(1.0, 2 * normal_tail(np.abs(difference) / std_error))
    return Differences(
        first=first[0],
        second=second[0],
        difference=difference,
        std_error=std_error,
        low=np.maximum(difference - QUANTILE_975 * std_error, -1.0),
        high=np.minimum(difference + QUANTILE_975 * std_error, 1.0),
        p_value=p_value,
        significant=benjamini_hochberg(p_value, rate),
    )
