"""The estimate of a pair of fields from the counts of reported pairs."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency import krr
from deniable.estimators.frequency.estimate import (
    Estimate,
    Independence,
    IntervalEnds,
    PairEstimate,
    count_reports,
)
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.intervals.two_binomials import TwoBinomials
from deniable.estimators.frequency.intervals.unified import unified_interval
from deniable.estimators.frequency.pairs.conditional import given_first, given_second
from deniable.estimators.frequency.pairs.joined_values import joined_sums, joined_values
from deniable.estimators.frequency.pairs.joint_mle import joint_mle
from deniable.estimators.frequency.pairs.table import inverted, std_error, std_error_without
from deniable.estimators.frequency.significance import benjamini_hochberg, binomial_tail, normal_tail
from deniable.estimators.mechanisms.matrix.pair import PairKRR

# Variance, in reports squared, of a pair that nobody has, from which on its errors are normal.
_NORMAL_FROM = 64.0
_LEAST = 1e-9
# Noise is rounded up to powers of this, so that pairs share their tests.
_RATIO = 1.3


def cell_intervals(unconstrained: FloatArray, reports: int, mechanism: PairKRR, level: float) -> IntervalEnds:
    """Return the interval of every pair's share.

    A report adds at most 1 / (c c') reports to an entry of the inverted table, where c and c' are the
    contrasts of the fields, and most reports add that or nearly nothing. So in these units an entry is like a
    count of true and false reports, of the variance that a pair without holders has, and `TwoBinomials` has
    its interval. Reports that share one value with the pair subtract, so an entry falls further than a count,
    but no further than a normal: the high end is at least that of `unified_interval`, as are both where that
    variance is 64 and more.

    Parameters
    ----------
    unconstrained : float64 array (K1, K2), the inverted table.
    reports : N, >= 1.
    mechanism : PairKRR of the reports.
    level : probability of covering the true share, in [0.9, 1).

    Returns
    -------
    low and high, float64 arrays (K1 K2,), by rows, fractions.
    """
    first, second = mechanism.fields
    contrast, share = first.contrast * second.contrast, unconstrained.ravel()
    low, high = unified_interval(share, std_error(unconstrained, reports, mechanism).ravel(), level=level)
    noise = (std_error_without(unconstrained, reports, mechanism).ravel() * reports * contrast) ** 2
    powers = np.ceil(np.log(np.maximum(noise, _LEAST)) / np.log(_RATIO))
    for power in np.unique(powers[noise < _NORMAL_FROM]):
        rate = _RATIO**power / reports
        miss = 2 * rate / (1 + np.sqrt(max(1 - 4 * rate, 0)))  # miss (1 - miss) = rate
        miss = min(miss, (1 - contrast) / 2)
        test = TwoBinomials(reports, miss + contrast, miss, contrast)
        inside = powers == power
        least, most = test.interval(reports * (miss + contrast * share[inside]), level)
        low[inside], high[inside] = least, np.maximum(high[inside], most)
    return IntervalEnds(low, high)


def independence_test(counts: NDArray[np.int64]) -> Independence:
    """Test with Pearson's chi-square whether the two fields are independent.

    The two parts of a report are randomized independently. So if the true fields are independent, the
    reported ones are too; and if the reported ones are, so are the true ones, because the channel can be
    inverted. The classical test of reported pairs is thus the test of true ones, and its false-alarm rate is
    the classical one: that of clients who are a random sample. Its power is that of randomized reports.

    A chi-square needs about 5 reports in each expected pair, so `joined_values` joins rare values first.

    Parameters
    ----------
    counts : int64 array (K1, K2), reports per reported pair, not all 0.

    Returns
    -------
    Independence, with the degrees of the joined values; with one value left, the statistic and its degrees
    are 0, and nothing is rejected.

    Source: Gaboardi, Rogers, "Local private hypothesis testing: chi-square tests" (ICML 2018), section 7.
    """
    table = joined_sums(counts, joined_values(counts)).astype(np.float64)
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    if degrees == 0:
        return Independence(0.0, 0, 1.0)
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    statistic = float(((table - expected) ** 2 / expected).sum())
    return Independence(statistic, degrees, float(chdtrc(degrees, statistic)))


def estimate_pair(counts: NDArray[np.int64], mechanism: PairKRR) -> Estimate:
    """Estimate the joint table, both margins, conditional shares, and whether the fields are independent.

    Margins are the estimates of each field alone. The inverted table's rows and columns sum to their
    inversions exactly; those of the most likely table do so unless it holds some pair at 0.

    A pair is significant if neither the normal tail of its inverted share nor the binomial tail of its count
    explains it, by Benjamini-Hochberg at 5 %. If nobody has the pair (i, j), its reports have the rate
    q2 s(i) + q1 s(j) - q1 q2, where s are the shares of reports with one of its values.

    Parameters
    ----------
    counts : int64 array (K1 K2,), reports per reported pair, by rows.
    mechanism : PairKRR of the reports.

    Returns
    -------
    Estimate with arrays of shape (K1 K2,), fractions of all reports, and with `pair`. The diagnostic `gap` is
    the bound of the joint table's distance to the maximum, in nats of log-likelihood per report.

    Raises
    ------
    ValueError if counts is not of shape (K1 K2,), negative or all 0.
    """
    reports = count_reports(counts, mechanism.width)
    table = counts.reshape(mechanism.shape)
    found = joint_mle(table, mechanism)
    unconstrained = inverted(table / reports, mechanism)
    error = std_error(unconstrained, reports, mechanism)
    frequency = found.table.ravel()
    low, high, for_all = shown_intervals(
        lambda level: cell_intervals(unconstrained, reports, mechanism, level), frequency
    )
    margins = (
        krr.estimate(table.sum(axis=1), mechanism.first),
        krr.estimate(table.sum(axis=0), mechanism.second),
    )
    arguments = (found.table, unconstrained, reports, mechanism)
    return Estimate(
        estimator="mle",
        reports=reports,
        frequency=frequency,
        std_error=error.ravel(),
        low=low,
        high=high,
        significant=benjamini_hochberg(
            np.maximum(
                normal_tail((unconstrained / error).ravel()),
                binomial_tail(counts, reports, _rates_without(table, mechanism).ravel()),
            )
        ),
        diagnostics={"gap": found.gap},
        pair=PairEstimate(
            margins,
            given_first(*arguments),
            given_second(*arguments),
            independence_test(table),
        ),
        unbiased=unconstrained.ravel(),
        for_all=for_all,
    )


def _rates_without(table: NDArray[np.int64], mechanism: PairKRR) -> FloatArray:
    """Rate of each reported pair if nobody has it, and rows and columns are reported as they are; > 0."""
    reports, (first, second) = table.sum(), mechanism.fields
    rows, columns = table.sum(axis=1, keepdims=True) / reports, table.sum(axis=0) / reports
    rates = second.q * rows + first.q * columns - first.q * second.q
    least: FloatArray = np.maximum(rates, first.q * second.q)
    return least
