"""What a roll-up is, and how often returning clients repeat their permanent noise in it.

Counts add up, but memoized noise of a returning client does not average out. Only the number of reports is
needed of each window, so counts can be added up as they arrive.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from estimators.arrays import FloatArray
from estimators.frequency.estimate import Estimate
from estimators.frequency.intervals.for_all import shown_intervals
from estimators.frequency.inversion import Inversion
from estimators.frequency.significance import benjamini_hochberg, normal_tail


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
    independent: Estimate, inverted: FloatArray, channels: tuple[Inversion, Inversion], overlap: float
) -> RollUp:
    """Add overlap - 1 times the variance of the permanent response to that of independent reports.

    The noise of n reports from one permanent response is n times its permanent noise plus n independent
    instantaneous ones. The variance of independent reports already contains both, once per report. In the
    test of the interval, the step of a count is `overlap` for permanent noise and 1 for the rest, weighted by
    their variances.

    Parameters
    ----------
    independent : Estimate of independent reports.
    inverted : float64 array (n,), the unconstrained estimate.
    channels : from true values to reports, and from true values to permanent responses.
    overlap : see `RollUp`.

    Source: Arcolezi et al., "Improving the utility of locally differentially private protocols for
    longitudinal and multidimensional frequency estimates" (Digital Communications and Networks, 2022), for
    the variance of two steps.
    """
    whole, permanent = (channel.score_test(independent.reports) for channel in channels)
    at_0, at_1 = whole.at_0 + (overlap - 1) * permanent.at_0, whole.at_1 + (overlap - 1) * permanent.at_1
    repeated = max(overlap * permanent.at_0 / at_0, overlap * permanent.at_1 / at_1)
    test = replace(whole, at_0=at_0, at_1=at_1, step=whole.step * (1 + (overlap - 1) * repeated))
    std_error = test.std_error(inverted)
    low, high, for_all = shown_intervals(partial(test.interval, inverted), independent.frequency)
    significant = benjamini_hochberg(normal_tail(inverted / std_error))
    shared = replace(
        independent, std_error=std_error, low=low, high=high, significant=significant, for_all=for_all
    )
    return RollUp(independent, shared, overlap)
