"""Which shares differ between two sets of reports: differences with intervals, and a test of all together.

Rule: it compares unconstrained estimates, which are unbiased. Most likely shares are not: what they take from
values below 0 they take from all others, and more where fewer reports came, so equal shares would differ.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.frequency.intervals.bounded_steps import normal_equivalent, reach_beyond_normal
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE, benjamini_hochberg, normal_tail


class SideShares(NamedTuple):
    """Unbiased shares of one set of reports.

    Parameters
    ----------
    share, std_error : float64 (n,), fractions; an error may be inf.
    step : the most that one client's reports add to a share, > 0, fractions.
    """

    share: FloatArray
    std_error: FloatArray
    step: float


@dataclass(frozen=True, eq=False)
class Differences:
    """Second share minus first one, of n values.

    Parameters
    ----------
    first, second : the shares compared, float64 (n,), fractions of all reports; may be negative or above 1.
    difference, std_error : float64 (n,), fractions.
    low, high : 95 % intervals of each difference alone, float64 (n,), -1 <= low <= high <= 1.
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


def compare_shares(first: SideShares, second: SideShares, rate: float = FALSE_DISCOVERY_RATE) -> Differences:
    """Test every value's difference, with Benjamini-Hochberg for all of them together.

    The two sets are of different reports, so the variances of a difference add up, and so do third cumulants.
    Those of a set are at most variance times step, as if its noise were a count of false reports. So a
    difference has the tails of `bounded_steps`, of the same variance and this skewness, on both sides: a
    little too far where reports are few, and normal where many are false. Equal shares have equal variances
    per step, so the set in which chance lowers its own takes that of the other.

    Errors are those of the randomizers' noise alone: a difference is one between those who reported, whoever
    else there is. Where other people reported in each set, shares may differ although nobody changed, which
    the rate leaves out.

    Parameters
    ----------
    first, second : of n values each.
    rate : false-discovery rate, in (0, 1).

    Raises
    ------
    ValueError if rate is out of range or lengths differ.
    """
    if not 0 < rate < 1:
        raise ValueError(f"rate must be in (0, 1), got {rate}")
    sizes = [len(each) for side in (first, second) for each in side[:2]]
    if len(set(sizes)) != 1:
        raise ValueError(f"shares and errors must have one length, got {sizes}")
    difference, std_error = second.share - first.share, np.hypot(first.std_error, second.std_error)
    per_step = np.maximum(first.std_error**2 / first.step, second.std_error**2 / second.step)
    total = first.step + second.step
    step = (first.step**2 + second.step**2) / total
    is_known = np.isfinite(per_step)
    variance = np.where(is_known, per_step, 1) * total
    steps = np.full(len(variance), step)
    reach = QUANTILE_975 * np.sqrt(variance) + reach_beyond_normal(variance, steps, QUANTILE_975)
    half = np.where(is_known, reach, np.inf)
    tail = normal_tail(normal_equivalent(np.abs(difference), variance, steps))
    p_value = np.where(is_known, np.minimum(1.0, 2 * tail), 1.0)
    return Differences(
        first=first.share,
        second=second.share,
        difference=difference,
        std_error=std_error,
        low=np.clip(difference - half, -1.0, 1.0),
        high=np.clip(difference + half, -1.0, 1.0),
        p_value=p_value,
        significant=benjamini_hochberg(p_value, rate),
    )
