"""The estimate of a pair of fields from the counts of reported pairs."""

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.arrays import FloatArray
from deniable.estimators.frequency import krr
from deniable.estimators.frequency.estimate import Estimate, PairEstimate, count_reports
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.pairs.cells import cell_intervals
from deniable.estimators.frequency.pairs.conditional import given_first, given_second
from deniable.estimators.frequency.pairs.independence import independence_test
from deniable.estimators.frequency.pairs.joint_mle import joint_mle
from deniable.estimators.frequency.pairs.table import inverted, std_error
from deniable.estimators.frequency.significance import benjamini_hochberg, binomial_tail, normal_tail
from deniable.estimators.mechanisms.matrix.pair import PairKRR


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
