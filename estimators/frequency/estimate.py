"""The result of every estimator: frequencies with standard errors, 95 % intervals and significance."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray


def count_reports(counts: NDArray[np.int64], width: int) -> int:
    """Validate counts and return their sum (N).

    Parameters
    ----------
    counts : int64 array (width,), reports per reported value.
    width : number of possible reported values.

    Returns
    -------
    N, >= 1.

    Raises
    ------
    ValueError if counts is not of shape (width,), negative or all 0.
    """
    if counts.shape != (width,):
        raise ValueError(f"counts must have shape ({width},), got {counts.shape}")
    if counts.min() < 0:
        raise ValueError(f"counts must not be negative, got {counts.min()}")
    reports = int(counts.sum())
    if reports == 0:
        raise ValueError("counts must hold at least 1 report, got 0")
    return reports


# Normal quantile of 0.975: half the width of a 95 % interval, in standard errors.
QUANTILE_975 = 1.959963984540054
#: Probability with which the test of independence rejects fields that are independent.
FALSE_ALARM_RATE = 0.05


@dataclass(frozen=True)
class ScalarEstimate:
    """An estimate of one number, in its own units, with its standard error and 95 % interval."""

    value: float
    std_error: float
    low: float
    high: float


@dataclass(frozen=True)
class QuantileEstimate:
    """The number that a share `level`, in (0, 1), of the true ones is below, with its 95 % interval."""

    level: float
    value: float
    low: float
    high: float


class IntervalEnds(NamedTuple):
    """Lower and upper ends of n intervals, float64 arrays (n,), fractions."""

    low: FloatArray
    high: FloatArray


@dataclass(frozen=True, eq=False)
class Shares:
    """Estimated shares of n values of their group, float64 arrays (n,), fractions, with 95 % intervals.

    `std_error` is inf, and the interval all of [0, 1], where the group is too small to say anything.
    """

    frequency: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Independence:
    """A chi-square test whether two fields are independent.

    Parameters
    ----------
    statistic : Pearson's chi-square of the reported pairs, >= 0.
    degrees : its degrees of freedom, of values joined where they are rare; 0 if too few reports are left for
        a test. Then the statistic is 0, and the p-value 1.
    p_value : probability of this statistic or a larger one if the fields are independent, in [0, 1].
    """

    statistic: float
    degrees: int
    p_value: float

    @property
    def is_rejected(self) -> bool:
        """Whether the fields depend on each other, with a false-alarm rate of 5 %."""
        return self.p_value < FALSE_ALARM_RATE


@dataclass(frozen=True, eq=False)
class PairEstimate:
    """What an estimate of a pair of fields has beside its joint table of K1 rows and K2 columns.

    Parameters
    ----------
    margins : the estimates of each field alone, of shapes (K1,) and (K2,); of all reports, but without those
        that are in no pair.
    given_first : share of each second value among the reports with the same first value, (K1 K2,) by rows.
    given_second : share of each first value among the reports with the same second value, (K1 K2,) by rows.
    independence : test whether the fields are independent.
    """

    margins: "tuple[Estimate, Estimate]"
    given_first: Shares
    given_second: Shares
    independence: Independence


@dataclass(frozen=True, eq=False)
class Misfit:
    """What strings outside the candidates do to an estimate, alike in every window and in their sum.

    Parameters
    ----------
    std_error : float64 array (n,), part of each standard error that more reports do not reduce, >= 0; the
        square of the whole is the sum of squares of this and of the sampling error.
    unreliable : bool array (n,), candidates that share bits with strings that nobody listed: their standard
        error is inf, and they are not significant.
    unexplained : bool array (cohorts, bits), bits set more often than candidates and an even background
        explain; left out of the fit.
    """

    std_error: FloatArray
    unreliable: NDArray[np.bool_]
    unexplained: NDArray[np.bool_]

    def places(self) -> list[tuple[int, int]]:
        """Return cohort and bit, both from 0, of each unexplained bit, in ascending order."""
        return [(int(cohort), int(bit)) for cohort, bit in np.argwhere(self.unexplained)]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated frequencies of n values among the counted reports.

    The true values are taken as fixed: errors and intervals reflect only the noise of the randomization.

    Parameters
    ----------
    estimator : name of the point estimate.
    reports : number of counted reports (N), >= 1.
    frequency : float64 array (n,), point estimate, fractions of all reports.
    std_error : float64 array (n,), standard error of the unconstrained estimate, fractions, > 0; inf where
        the value cannot be identified from the counts.
    low, high : float64 arrays (n,), unified 95 % interval from the unconstrained estimate, low < high, within
        [0, 1] where `frequency` is, and holding `frequency`; 0 and 1 where `std_error` is inf.
    significant : bool array (n,), frequency > 0 after Benjamini-Hochberg at 5 %, one-sided; False where
        `frequency` and `low` are 0, as a fit of impossible counts leaves them.
    other : frequency and standard error of all strings that are no candidates; only for Bloom RAPPOR with a
        background, for local hashing, and for bits of pairs, of reports without a listed pair.
    diagnostics : diagnostics of the numerical solution, by name.
    mean, quantiles : of a number, in its units; None and empty for other mechanisms.
    supports : int64 array (n,), estimated number of reports whose bucket each candidate shares, without
        those of frequent candidates; only for local hashing.
    pair : margins, conditional shares and the test of independence; only for a pair of fields.
    misfit : what strings outside the candidates do to the estimate; only for Bloom RAPPOR.
    unbiased : float64 array (n,), the unconstrained estimate, so entries may be negative or above 1; means
        over windows are of these. None if not computed.
    for_all : ends, within [0, 1] and beyond `low` and `high`, of intervals that hold all n true shares
        at once with 95 %. None if not computed.
    density : float64 array (d,), estimated shares of the cells of a number, which sum to 1, without
        intervals: `frequency` has those of rows of several cells. None for other mechanisms.
    known_collisions : float64 array (n,), what was taken out of each unconstrained estimate because frequent
        values share its buckets more often than by chance, fractions; only for local hashing.
    """

    estimator: str
    reports: int
    frequency: FloatArray
    std_error: FloatArray
    low: FloatArray
    high: FloatArray
    significant: NDArray[np.bool_]
    other: tuple[float, float] | None = None
    diagnostics: dict[str, float] = field(default_factory=dict)
    mean: ScalarEstimate | None = None
    quantiles: tuple[QuantileEstimate, ...] = ()
    supports: NDArray[np.int64] | None = None
    pair: PairEstimate | None = None
    misfit: Misfit | None = None
    unbiased: FloatArray | None = None
    for_all: IntervalEnds | None = None
    known_collisions: FloatArray | None = None
    density: FloatArray | None = None

    def __post_init__(self) -> None:
        is_above = (self.frequency > 0) | (self.low > 0)
        object.__setattr__(self, "significant", self.significant & is_above)

    @property
    def count(self) -> FloatArray:
        """Estimated number of reports with each true value, float64 (n,): frequency times reports."""
        return self.frequency * self.reports


def shown_interval(low: FloatArray, high: FloatArray, frequency: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Clip an interval of the unconstrained estimate to [0, 1], then widen it to contain the point estimate.

    Neither step reduces coverage, since the true frequency is in [0, 1].

    Parameters
    ----------
    low, high : float64 arrays (n,), any reals, low <= high.
    frequency : float64 array (n,), the point estimate.

    Returns
    -------
    The new low and high, float64 arrays (n,), fractions.
    """
    return np.minimum(np.clip(low, 0, 1), frequency), np.maximum(np.clip(high, 0, 1), frequency)
