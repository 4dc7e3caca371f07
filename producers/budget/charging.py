"""Decide which reports clients may send: pure arithmetic on their counts so far, for many clients at once.

The rules, for each report in the order given:
1. A window that starts before the client's horizon is closed: too late.
2. The client's reports in this period have reached its limit: over budget.
3. The client's reports in this window have reached theirs: over window.
4. Else it is accepted, and counted in both.

`hold_buckets` decides which bucket an accepted report of longitudinal local hashing shows.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deniable.producers.budget.client_balance import MOST_REPORTS

# Reports of one client in one window that is still open.
OPEN = np.dtype([("window_start", "<i8"), ("reports", "<u2")])

# The bucket that a client's last report showed, from 1; 0 if there was none. And how often it has changed.
SHOWN = np.dtype([("bucket", "<u2"), ("changes", "<u4")])

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_NONE = np.iinfo(np.int64).min


@dataclass
class ClientRows:
    """The stored state of some clients, all distinct.

    Parameters
    ----------
    balances : CLIENT_BALANCE (m,), see `deniable.producers.budget.client_balance`.
    windows : OPEN (e,), distinct by client and start.
    owners : int64 (e,), the client, in [0, m), of each window.
    shown : SHOWN (m,); None if changes of buckets are not limited.
    """

    balances: NDArray[np.void]
    windows: NDArray[np.void]
    owners: Ints
    shown: NDArray[np.void] | None = None


# Horizons. A client's windows before its horizon are closed, since its counts in them may have been
# forgotten: 1. A charge forgets, for the clients that it charges, windows that start before `earliest`: its
# time minus window and grace. 2. The horizon of terms is the largest `earliest` of any charge, under any
# terms, since these were first used. It never decreases. Terms of a new fingerprint have none: nothing
# counted under them was forgotten. Terms of a known fingerprint begin with its horizon: their windows are the
# same. 3. A client is charged in windows from max(earliest, min(horizon, its newest window)) on.  Why no
# window is counted from 0 again: let P be the largest `earliest` of the charges that accepted a report of a
# client since the terms were first used. The accepted window starts at P or later, so P is at most the
# client's newest window. By rule 2, P is at most the horizon. So every window that rule 3 accepts starts at P
# or later, and no charge has forgotten it.
def horizons(rows: ClientRows, earliest: int, horizon: int) -> Ints:
    """Return the start of the earliest window that is open to each client, int64 (m,).

    Parameters
    ----------
    rows : ClientRows of m clients, as stored.
    earliest : unix seconds, from the clock, see rule 1.
    horizon : of the present terms, unix seconds, `earliest` included.
    """
    newest = np.full(len(rows.balances), _NONE)
    if horizon > earliest:
        np.maximum.at(newest, rows.owners, rows.windows["window_start"])
    opened: Ints = np.maximum(earliest, np.minimum(horizon, newest))
    return opened


# What is decided about a report, by number.
ACCEPTED, OVER_WINDOW, OVER_BUDGET, TOO_LATE = range(4)
#: Why a report is refused, by the number of that decision.
REASONS = {OVER_WINDOW: "over_window", OVER_BUDGET: "over_budget", TOO_LATE: "too_late"}


@dataclass(frozen=True)
class ChargeResult:
    """What was decided about n reports.

    Parameters
    ----------
    decisions : uint8 (n,), ACCEPTED or one of REASONS.
    buckets : int64 (n,), the bucket that each accepted report shows; None if they were not asked for.
    """

    decisions: NDArray[np.uint8]
    buckets: Ints | None = None

    @property
    def accepted(self) -> Bools:
        """Which reports were accepted, bool (n,)."""
        accepted: Bools = self.decisions == ACCEPTED
        return accepted

    def refused(self) -> dict[str, int]:
        """Return the number of refused reports by reason, zeros included."""
        counts = np.bincount(self.decisions, minlength=1 + max(REASONS)).tolist()
        return {reason: counts[number] for number, reason in REASONS.items()}


def charge_rows(
    rows: ClientRows,
    owners: Ints,
    windows: Ints,
    limits: Ints,
    reports_per_window: int,
    horizons: Ints,
    earliest: int,
) -> tuple[ChargeResult, ClientRows]:
    """Decide about n reports of m clients, one after the other.

    Parameters
    ----------
    rows : ClientRows of the m clients, with balances as returned by `bring_up_to_date`.
    owners : int64 (n,), the client of each report, in [0, m), ascending.
    windows : int64 (n,), start of its window, unix seconds.
    limits : int64 (m,), reports of each client in this period.
    reports_per_window : of one client.
    horizons : int64 (m,), unix seconds, at least `earliest`; earlier windows of each client are closed.
    earliest : unix seconds; earlier windows are forgotten.

    Returns
    -------
    The decision, and the ClientRows that follow from it, owners ascending.
    """
    timely = np.flatnonzero(windows >= horizons[owners])
    groups = _Groups.of(rows, owners[timely], windows[timely], earliest)
    # Rule 3 as if all reports that it passes were accepted: right until rule 2 refuses, and irrelevant after.
    passes = groups.before() < reports_per_window
    left = limits - rows.balances["reports"].astype(np.int64)
    passed = _running(passes.astype(np.int64), np.flatnonzero(changes(owners[timely])))
    exhausted = passed >= left[owners[timely]]
    taken = passes & ~exhausted

    decisions = np.full(len(owners), TOO_LATE, np.uint8)
    decisions[timely] = np.where(exhausted, OVER_BUDGET, np.where(passes, ACCEPTED, OVER_WINDOW))
    balances = rows.balances.copy()
    new_reports = np.bincount(owners[decisions == ACCEPTED], minlength=len(balances))
    for column in ("reports", "lifetime"):
        balances[column] = np.minimum(balances[column] + new_reports, MOST_REPORTS)
    return ChargeResult(decisions), ClientRows(balances, *groups.with_reports(taken), rows.shown)


def hold_buckets(
    shown: NDArray[np.void], owners: Ints, buckets: Ints, limit: int
) -> tuple[Ints, NDArray[np.void]]:
    """Replace the buckets of a client that has no changes left by the last one that it showed.

    Reports count one after the other. A client shows at most `limit` + 1 different buckets. The work does not
    depend on the buckets.

    Parameters
    ----------
    shown : SHOWN (m,), with at most `limit` changes each.
    owners : int64 (n,), the client of each report, in [0, m), ascending.
    buckets : int64 (n,), from 1, in the order of each client's reports.
    limit : changes in all, >= 0.

    Returns
    -------
    The bucket that each report shows, int64 (n,), and what is stored then, SHOWN (m,).
    """
    is_first = changes(owners)
    first = np.flatnonzero(is_first)
    start = np.repeat(first, np.diff(first, append=len(owners)))
    stored = shown["bucket"][owners].astype(np.int64)
    before = np.where(is_first, stored, np.roll(buckets, 1))
    is_change = ((before != 0) & (buckets != before)).astype(np.int64)
    counted = np.cumsum(is_change)
    count = shown["changes"][owners] + counted - (counted - is_change)[start]
    # While a client has changes left, its reports show their buckets, so `before` is what was shown last. The
    # count never falls: from the first change too many on, all of them show what the last report before did.
    latest = np.maximum.accumulate(np.where(count <= limit, np.arange(len(owners)), -1))
    held = np.where(latest >= start, buckets[latest], stored)
    after, last = shown.copy(), np.flatnonzero(np.roll(is_first, -1))
    after["bucket"][owners[last]] = held[last]
    after["changes"][owners[last]] = np.minimum(count[last], limit)
    return held, after


def changes(column: Ints) -> Bools:
    """Return True at the first of each run of equal numbers."""
    return np.diff(column, prepend=column[:1] - 1).astype(bool)


@dataclass(frozen=True)
class _Groups:
    """Stored open windows, then new reports, grouped by client and window.

    Parameters
    ----------
    owner, start : int64 (e + n,), client and window start of each.
    kept : int64 (e,), reports in each stored window.
    order : int64 (e + n,), by client and window; within a group, the window first, then reports as given.
    first : int64 (g,), ascending, where in `order` each group begins.
    """

    owner: Ints
    start: Ints
    kept: Ints
    order: Ints
    first: Ints

    @classmethod
    def of(cls, rows: ClientRows, owners: Ints, windows: Ints, earliest: int) -> Self:
        """Group the windows of `rows` from `earliest` on, and the reports."""
        is_open = rows.windows["window_start"] >= earliest
        kept = rows.windows[is_open]
        owner = np.concatenate([rows.owners[is_open], owners])
        start = np.concatenate([kept["window_start"], windows])
        order = np.lexsort((start, owner))
        first = np.flatnonzero(changes(owner[order]) | changes(start[order]))
        return cls(owner, start, kept["reports"].astype(np.int64), order, first)

    def before(self) -> Ints:
        """Return the number of reports of the same client and window before each report, int64 (n,)."""
        ones = np.ones(len(self.owner) - len(self.kept), np.int64)
        found = np.empty(len(self.owner), np.int64)
        found[self.order] = _running(np.concatenate([self.kept, ones])[self.order], self.first)
        return found[len(self.kept) :]

    def with_reports(self, taken: Bools) -> tuple[NDArray[np.void], Ints]:
        """Return open windows, accepted reports included: OPEN (f,) and owners, int64 (f,), ascending."""
        totals = _totals(np.concatenate([self.kept, taken])[self.order], self.first)
        is_open = totals > 0
        place = self.order[self.first[is_open]]
        windows = np.empty(len(place), OPEN)
        windows["window_start"], windows["reports"] = self.start[place], totals[is_open]
        return windows, self.owner[place]


def _running(weights: Ints, first: Ints) -> Ints:
    """Return the sum of the weights before each one in its group; groups begin at `first`."""
    sums = np.cumsum(weights) - weights
    return sums - np.repeat(sums[first], np.diff(first, append=len(weights)))


def _totals(weights: Ints, first: Ints) -> Ints:
    """Return the sum of each group's weights."""
    sums = np.concatenate([[0], np.cumsum(weights)])
    ends = np.append(first[1:], len(weights)) if len(first) else first
    totals: Ints = sums[ends] - sums[first]
    return totals
