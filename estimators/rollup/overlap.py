"""What a roll-up is, and how often returning clients repeat their permanent noise in it.

Counts add up, but memoized noise of a returning client does not average out. Only the number of reports is
needed of each window, so counts can be added up as they arrive.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.decoding.hashed.support_test import SupportTest
from deniable.estimators.frequency.estimate import Estimate
from deniable.estimators.frequency.intervals.for_all import shown_intervals
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.frequency.significance import benjamini_hochberg, normal_tail


@dataclass(frozen=True, eq=False)
class RollUp:
    """One estimate over several windows under two opposite assumptions about the clients.

    Parameters
    ----------
    independent : Estimate with errors for independent reports: each from a different client, or with a fresh
        permanent response. Too small if clients return.
    shared : Estimate with errors for the largest overlap of clients, all with unchanged values: the clients
        of a smaller window all report in each larger one. An upper bound if clients report at most once per
        window. A client that changes its value draws a new permanent response, and is in between.
    overlap : factor on the variance of permanent noise in `shared`, in [1, number of windows].
    """

    independent: Estimate
    shared: Estimate
    overlap: float


def client_overlap(window_reports: NDArray[np.int64]) -> float:
    """Return the largest factor by which returning clients multiply the variance of permanent noise.

    Two windows share at most min(n_i, n_j) clients. The permanent noise of a shared client is the same in
    both, so the variance of the sum has the factor sum_ij min(n_i, n_j) / sum_i n_i.

    Parameters
    ----------
    window_reports : int64 array (windows,), reports of each window, not all 0.

    Returns
    -------
    Factor in [1, windows]; the number of windows if all have equally many reports.

    Raises
    ------
    ValueError if there is no report.
    """
    reports = int(window_reports.sum())
    if reports == 0:
        raise ValueError("window_reports must hold at least 1 report, got 0")
    descending = np.sort(window_reports)[::-1].astype(np.float64)
    # Window i (from 0) is the smaller one in 2 i ordered pairs with the windows before it, and in (i, i).
    return float(descending @ (2 * np.arange(len(descending)) + 1)) / reports


def with_returning_clients(
    independent: Estimate,
    counts: NDArray[np.int64],
    channels: tuple[Inversion, Inversion],
    window_reports: NDArray[np.int64],
) -> RollUp:
    """Add overlap - 1 times the variance of the permanent response to that of independent reports.

    The noise of n reports from one permanent response is n times its permanent noise plus n independent
    instantaneous ones. The variance of independent reports already contains both, once per report.

    Intervals and significance are by `SupportTest`: counts are those of independent reports, and what
    returning clients add has its variance and steps of windows + 1. With at most w reports of a client, its
    k-th cumulant is at most (w^k - w) / (w² - w) times its variance where few responses are false, and that
    is at most (w + 1)^(k - 2).

    Parameters
    ----------
    independent : Estimate of independent reports.
    counts : int64 array (n,), reports of each bucket, summed over windows.
    channels : from true values to reports, and from true values to permanent responses.
    window_reports : int64 array (windows,), reports of each window.

    Source: Arcolezi et al., "Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates" (Digital Communications and Networks, 2022), for
    the variance of two steps.
    """
    overlap, reports = client_overlap(window_reports), independent.reports
    whole, permanent = channels
    inverted = whole.frequency(counts / reports)
    absent, everybody = np.zeros(len(counts)), np.ones(len(counts))
    scale = (overlap - 1) * (reports * whole.contrast) ** 2
    test = SupportTest(
        supports=counts.astype(np.float64),
        reports=reports,
        hit=np.full(len(counts), whole.hit),
        miss=np.full(len(counts), whole.miss),
        spread_0=scale * permanent.std_error(absent, reports) ** 2,
        spread_1=scale * permanent.std_error(everybody, reports) ** 2,
        jump=1.0 + np.count_nonzero(window_reports),
    )
    low, high, for_all = shown_intervals(test.interval, independent.frequency)
    shared = replace(
        independent,
        std_error=np.sqrt(
            whole.std_error(inverted, reports) ** 2
            + (overlap - 1) * permanent.std_error(inverted, reports) ** 2
        ),
        low=low,
        high=high,
        significant=benjamini_hochberg(normal_tail(test.deviates_of_absent())),
        for_all=for_all,
    )
    return RollUp(independent, shared, overlap)
