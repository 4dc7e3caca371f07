"""What is kept of one client in one collection beside its open windows, and how it is brought up to now."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# `until`: end of the period that `reports` were counted in, unix seconds. `terms`: number of the Terms under
# which `reports` and `lifetime` were made. `carried`: epsilon at delta = 0 of reports under earlier
# parameters, in the period; `carried_lifetime`: ever.
# Short, since a batch of many clients writes every page of the table: numbers stop at MOST_REPORTS, epsilons
# are rounded up.
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

# Length of the one period of who has no budget: longer than any other.
ENDLESS = 2**32


@dataclass(frozen=True)
class SpendingTerms:
    """Under what reports were made and counted.

    Parameters
    ----------
    fingerprint : of the collection, 8 bytes.
    period_seconds : length of a period, at least 1; ENDLESS without a budget.
    epsilon_per_report, epsilon_inf : nats, as of Allowance.
    """

    fingerprint: bytes
    period_seconds: int
    epsilon_per_report: float
    epsilon_inf: float


def bring_up_to_date(
    heads: NDArray[np.void], now: float, number: int, terms: Mapping[int, SpendingTerms]
) -> NDArray[np.void]:
    """Heads (m,) as of now: under the present terms, and in the present period.

    Parameters
    ----------
    heads : HEAD (m,).
    now : unix seconds.
    number : of the present terms.
    terms : by number; all that heads name, and the present ones.
    """
    return _roll(_carry(heads, number, terms), now, terms[number].period_seconds)


def _carry(heads: NDArray[np.void], number: int, terms: Mapping[int, SpendingTerms]) -> NDArray[np.void]:
    """Bring heads under other terms under the present ones; nothing is refunded.

    Other parameters: reports become the epsilon that they cost, at delta = 0. Longer periods: the present one
    began before that of `reports` did, and what was spent meanwhile is not known; all that was ever spent
    bounds it.
    """
    heads, new = heads.copy(), terms[number]
    for other in np.unique(heads["terms"][heads["terms"] != number]):
        old, stale = terms[int(other)], heads["terms"] == other
        if old.period_seconds < new.period_seconds:
            heads["reports"][stale] = heads["lifetime"][stale]
            heads["carried"][stale] = heads["carried_lifetime"][stale]
        if old.fingerprint != new.fingerprint:
            for reports, carried in (("reports", "carried"), ("lifetime", "carried_lifetime")):
                spent = np.minimum(heads[reports][stale] * old.epsilon_per_report, old.epsilon_inf)
                heads[carried][stale] = _rounded_up(heads[carried][stale] + spent)
                heads[reports][stale] = 0
    heads["terms"] = number
    return heads


def _roll(heads: NDArray[np.void], now: float, period_seconds: int) -> NDArray[np.void]:
    """Begin the present period for whom the last one has ended.

    A period begins only where the present one starts at or after the end of the one that was counted. So a
    clock set back, or another length of periods, refunds nothing. An endless period never begins anew: a
    budget that is introduced later counts all that was reported until then into the period in which it is.
    """
    heads = heads.copy()
    if period_seconds == ENDLESS:
        heads["until"] = np.maximum(heads["until"], int(now) + 1)
        return heads
    start = int(now // period_seconds) * period_seconds
    ended = heads["until"] <= start
    heads["reports"][ended] = 0
    heads["carried"][ended] = 0
    heads["until"] = np.maximum(heads["until"], start + period_seconds)
    return heads


def _rounded_up(epsilon: NDArray[np.float64]) -> NDArray[np.float32]:
    nearest = epsilon.astype(np.float32)
    return np.where(nearest < epsilon, np.nextafter(nearest, np.float32(np.inf)), nearest)
