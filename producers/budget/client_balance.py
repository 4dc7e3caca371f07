"""The stored balance of one client in one collection, and how to bring it up to date."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

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

FINGERPRINT_BYTES = 8
CHANGES_BYTES = 4
MEMOIZED = b"\1"
MOST_CHANGES = 2 ** (8 * CHANGES_BYTES) - 1

# Length of the only period without a budget: longer than any other.
ENDLESS = 2**32


@dataclass(frozen=True)
class SpendingTerms:
    """The terms under which reports were randomized and counted.

    Parameters
    ----------
    fingerprint : of the collection, FINGERPRINT_BYTES.
    period_seconds : length of a period, at least 1; ENDLESS without a budget.
    epsilon_per_report, epsilon_inf : nats, of the Allowance.
    changes : how many changes of its bucket a client shows, at most MOST_CHANGES; None for any number.
    is_memoized : whether reports share permanent responses, and `epsilon_inf` holds whatever the values do.
        Implied by `changes`. False, too, of what earlier releases stored, whose figure may be that of one
        value.
    """

    fingerprint: bytes
    period_seconds: int
    epsilon_per_report: float
    epsilon_inf: float
    changes: int | None = None
    is_memoized: bool = False

    @property
    def counted(self) -> bytes:
        """Bytes of what numbers of reports count: `fingerprint`, then `changes`, if any."""
        limited = b"" if self.changes is None else self.changes.to_bytes(CHANGES_BYTES, "little")
        return self.fingerprint + limited

    @property
    def meaning(self) -> bytes:
        """Bytes that terms are stored under: `counted`, then MEMOIZED unless `changes` imply it."""
        return self.counted + (MEMOIZED if self.is_memoized and self.changes is None else b"")

    @classmethod
    def stored(cls, meaning: bytes, period_seconds: int, per_report: float, epsilon_inf: float) -> Self:
        """Return the terms that a store knows under this `meaning`."""
        fingerprint, rest = meaning[:FINGERPRINT_BYTES], meaning[FINGERPRINT_BYTES:]
        changes = int.from_bytes(rest, "little") if len(rest) == CHANGES_BYTES else None
        return cls(fingerprint, period_seconds, per_report, epsilon_inf, changes, bool(rest))


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
    for other in np.unique(balances["terms"][balances["terms"] != number]):
        old, stale = terms[int(other)], balances["terms"] == other
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
