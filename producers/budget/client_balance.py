"""The stored balance of one client in one collection, and how to bring it up to date."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.spending_terms import ENDLESS, SpendingTerms

# `until`: end of the period that `reports` were counted in, unix seconds. `terms`: number of the terms under
# which `reports` and `lifetime` were counted. `carried`: epsilon at delta = 0 of reports under earlier
# parameters, in the period; `carried_lifetime`: in all periods. Compact, since a batch of many clients writes
# every page of the table: numbers stop at MOST_REPORTS, epsilons are rounded up.
CLIENT_BALANCE = np.dtype(
    [
        ("until", "<i8"),
        ("terms", "<u4"),
        ("reports", "<u4"),
        ("lifetime", "<u4"),
        ("carried", "<f4"),
        ("carried_lifetime", "<f4"),
    ]
)
MOST_REPORTS = 2**32 - 1


def bring_up_to_date(
    balances: NDArray[np.void], now: float, number: int, terms: Mapping[int, SpendingTerms]
) -> NDArray[np.void]:
    """Return balances (m,) under the present terms and in the present period.

    Parameters
    ----------
    balances : CLIENT_BALANCE (m,).
    now : unix seconds.
    number : of the present terms.
    terms : by number; those of all balances, and the present ones.
    """
    return _roll(_carry(balances, number, terms), now, terms[number].period_seconds)


def is_continued(
    balances: NDArray[np.void], number: int, terms: Mapping[int, SpendingTerms]
) -> NDArray[np.bool_]:
    """Return which balances (m,) have the parameters and `changes` of the present terms, bool (m,)."""
    alike = [other for other, each in terms.items() if each.counted == terms[number].counted]
    return np.isin(balances["terms"], alike)


def _carry(balances: NDArray[np.void], number: int, terms: Mapping[int, SpendingTerms]) -> NDArray[np.void]:
    """Convert balances under other terms to the present ones; nothing is refunded.

    If the parameters or `changes` differ, reports become the epsilon that they cost, at delta = 0, whatever
    the values did. If periods are longer now, the present one began before the period of `reports`, and the
    spending between is unknown; the lifetime spending bounds it.
    """
    balances, new = balances.copy(), terms[number]
    for other in sorted({*balances["terms"].tolist()} - {number}):  # np.unique would import numpy.ma
        old, stale = terms[other], balances["terms"] == other
        if old.period_seconds < new.period_seconds:
            balances["reports"][stale] = balances["lifetime"][stale]
            balances["carried"][stale] = balances["carried_lifetime"][stale]
        if old.counted != new.counted:
            most = old.epsilon_inf if old.is_memoized else math.inf
            for reports, carried in (("reports", "carried"), ("lifetime", "carried_lifetime")):
                spent = np.minimum(balances[reports][stale] * old.epsilon_per_report, most)
                balances[carried][stale] = _rounded_up(balances[carried][stale] + spent)
                balances[reports][stale] = 0
    balances["terms"] = number
    return balances


def _roll(balances: NDArray[np.void], now: float, period_seconds: int) -> NDArray[np.void]:
    """Begin the present period for clients whose last one has ended.

    A period begins only if the present one starts at or after the end of the counted one. So a clock set
    back, or periods of another length, refund nothing. An endless period never ends: a budget introduced
    later counts all earlier reports into its first period.
    """
    balances = balances.copy()
    if period_seconds == ENDLESS:
        balances["until"] = np.maximum(balances["until"], int(now) + 1)
        return balances
    start = int(now // period_seconds) * period_seconds
    ended = balances["until"] <= start
    balances["reports"][ended] = 0
    balances["carried"][ended] = 0
    balances["until"] = np.maximum(balances["until"], start + period_seconds)
    return balances


def _rounded_up(epsilon: NDArray[np.float64]) -> NDArray[np.float32]:
    nearest = epsilon.astype(np.float32)
    return np.where(nearest < epsilon, np.nextafter(nearest, np.float32(np.inf)), nearest)
