"""Which reports a client may make, for many clients at once: pure arithmetic on what was counted before.

The rules, for each report in the order given:
1. A window that starts before the horizon is closed: too late.
2. The client's reports in this period have reached its limit: over budget.
3. The client's reports in this window have reached theirs: over window.
4. Else it is accepted, and counted in both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

# What is kept of one client in one collection. `until`: end of the period that `reports` were counted in,
# unix seconds. `terms`: the parameters under which `reports` and `lifetime` were made. `carried`: epsilon at
# delta = 0 of reports under earlier parameters, in the period; `carried_lifetime`: ever.
# Short, since a batch of many clients writes every page of the table: numbers stop at MOST_REPORTS, epsilons
# are rounded up.
HEAD = np.dtype(
    [
        ("until", "<i8"),
        ("terms", "<u4"),
        ("reports", "<u4"),
        ("lifetime", "<u4"),
        ("carried", "<f4"),
        ("carried_lifetime", "<f4"),
    ]
)
# Reports of one client in one window that is still open.
OPEN = np.dtype([("window_start", "<i8"), ("reports", "<u2")])

MOST_REPORTS = 2**32 - 1

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass
class Rows:
    """What is kept of some clients, all distinct.

    Parameters
    ----------
    heads : HEAD (m,).
    windows : OPEN (e,), each of another client or start.
    owners : int64 (e,), the client, in [0, m), that each of them belongs to.
    """

    heads: NDArray[np.void]
    windows: NDArray[np.void]
    owners: Ints


@dataclass(frozen=True)
class Charged:
    """Which reports were accepted, and how many were not, by reason.

    Parameters
    ----------
    accepted : bool (n,).
    over_window, over_budget, too_late : reports refused.
    """

    accepted: Bools
    over_window: int
    over_budget: int
    too_late: int


def roll(heads: NDArray[np.void], now: float, period_seconds: int | None) -> NDArray[np.void]:
    """Heads (m,) as of now: the present period begins for whom the last one has ended.

    A period begins only where the present one starts at or after the end of the one that was counted. So a
    clock set back, or another length of periods, refunds nothing.

    Parameters
    ----------
    heads : HEAD (m,).
    now : unix seconds.
    period_seconds : None where there are no periods. A budget that is introduced later counts all that was
        reported until then into the period in which it is.
    """
    heads = heads.copy()
    if period_seconds is None:
        heads["until"] = np.maximum(heads["until"], int(now) + 1)
        return heads
    start = int(now // period_seconds) * period_seconds
    ended = heads["until"] <= start
    heads["reports"][ended] = 0
    heads["carried"][ended] = 0
    heads["until"] = np.maximum(heads["until"], start + period_seconds)
    return heads


def carry(heads: NDArray[np.void], terms: int, prices: dict[int, Sequence[float]]) -> NDArray[np.void]:
    """Heads (m,) under the present terms: reports under others become the epsilon that they cost.

    Parameters
    ----------
    heads : HEAD (m,).
    terms : the present ones.
    prices : by terms, epsilon_per_report and epsilon_inf (see Allowance).
    """
    heads = heads.copy()
    for old in np.unique(heads["terms"][heads["terms"] != terms]):
        per_report, most = prices[int(old)]
        stale = heads["terms"] == old
        for reports, carried in (("reports", "carried"), ("lifetime", "carried_lifetime")):
            spent = np.minimum(heads[reports][stale] * per_report, most)
            heads[carried][stale] = _rounded_up(heads[carried][stale] + spent)
            heads[reports][stale] = 0
    heads["terms"] = terms
    return heads


def charge_rows(
    rows: Rows, owners: Ints, windows: Ints, limits: Ints, reports_per_window: int, horizon: int
) -> tuple[Charged, Rows]:
    """Decide about n reports of m clients, one after the other.

    Parameters
    ----------
    rows : Rows of the m clients, rolled and carried.
    owners : int64 (n,), the client of each report, in [0, m).
    windows : int64 (n,), start of its window, unix seconds.
    limits : int64 (m,), reports of each client in this period.
    reports_per_window : of one client.
    horizon : unix seconds; earlier windows are closed.

    Returns
    -------
    What was decided, and the Rows that follow from it, owners rising.
    """
    timely = np.flatnonzero(windows >= horizon)
    groups = _Groups.of(rows, owners[timely], windows[timely], horizon)
    # Rule 3 as if all that it lets pass were accepted: right until rule 2 refuses, and not asked after that.
    passes = groups.before() < reports_per_window
    left = limits - rows.heads["reports"].astype(np.int64)
    exhausted = _earlier(owners[timely], passes) >= left[owners[timely]]
    taken = passes & ~exhausted

    accepted = np.zeros(len(owners), bool)
    accepted[timely] = taken
    heads = rows.heads.copy()
    made = np.bincount(owners[accepted], minlength=len(heads))
    for column in ("reports", "lifetime"):
        heads[column] = np.minimum(heads[column] + made, MOST_REPORTS)
    charged = Charged(
        accepted,
        over_window=int((~passes & ~exhausted).sum()),
        over_budget=int(exhausted.sum()),
        too_late=len(owners) - len(timely),
    )
    return charged, Rows(heads, *groups.with_reports(taken))


@dataclass(frozen=True)
class _Groups:
    """Open windows that are kept, and then reports, grouped by client and window.

    Parameters
    ----------
    owner, start : int64 (e + n,), of each.
    kept : int64 (e,), reports in each window that is kept.
    order : int64 (e + n,), by client and window; within a group, the window first, then reports as given.
    first : int64 (g,), rising, where in `order` each group begins.
    """

    owner: Ints
    start: Ints
    kept: Ints
    order: Ints
    first: Ints

    @classmethod
    def of(cls, rows: Rows, owners: Ints, windows: Ints, horizon: int) -> Self:
        """Group the windows of `rows` from the horizon on, and reports."""
        is_open = rows.windows["window_start"] >= horizon
        kept = rows.windows[is_open]
        owner = np.concatenate([rows.owners[is_open], owners])
        start = np.concatenate([kept["window_start"], windows])
        order = np.lexsort((start, owner))
        first = np.flatnonzero(_changes(owner[order]) | _changes(start[order]))
        return cls(owner, start, kept["reports"].astype(np.int64), order, first)

    def before(self) -> Ints:
        """Reports of the same client and window that come before each report, int64 (n,)."""
        ones = np.ones(len(self.owner) - len(self.kept), np.int64)
        found = np.empty(len(self.owner), np.int64)
        found[self.order] = _running(np.concatenate([self.kept, ones])[self.order], self.first)
        return found[len(self.kept) :]

    def with_reports(self, taken: Bools) -> tuple[NDArray[np.void], Ints]:
        """Open windows, with the reports that are taken: OPEN (f,) and owners, int64 (f,), rising."""
        totals = _totals(np.concatenate([self.kept, taken])[self.order], self.first)
        is_open = totals > 0
        place = self.order[self.first[is_open]]
        windows = np.empty(len(place), OPEN)
        windows["window_start"], windows["reports"] = self.start[place], totals[is_open]
        return windows, self.owner[place]


def _rounded_up(epsilon: NDArray[np.float64]) -> NDArray[np.float32]:
    nearest = epsilon.astype(np.float32)
    return np.where(nearest < epsilon, np.nextafter(nearest, np.float32(np.inf)), nearest)


def _earlier(owners: Ints, chosen: Bools) -> Ints:
    """For each report, how many of the same client before it are chosen, int64 (n,)."""
    order = np.argsort(owners, kind="stable")
    found = np.empty(len(owners), np.int64)
    found[order] = _running(chosen[order].astype(np.int64), np.flatnonzero(_changes(owners[order])))
    return found


def _changes(column: Ints) -> Bools:
    """True at the first of each run of equal numbers."""
    return np.diff(column, prepend=column[:1] - 1).astype(bool)


def _running(weights: Ints, first: Ints) -> Ints:
    """Sum of the weights before each one in its group; groups begin at `first`."""
    sums = np.cumsum(weights) - weights
    return sums - np.repeat(sums[first], np.diff(first, append=len(weights)))


def _totals(weights: Ints, first: Ints) -> Ints:
    """Sum of the weights of each group."""
    sums = np.concatenate([[0], np.cumsum(weights)])
    ends = np.append(first[1:], len(weights)) if len(first) else first
    totals: Ints = sums[ends] - sums[first]
    return totals
