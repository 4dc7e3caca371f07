"""One collection's limits and its greatest spending by a client, kept while the store is closed."""

import numpy as np
from numpy.typing import NDArray

from deniable.config.settings.allowance import LEVELS, Allowance
from deniable.estimators.errors import DeniableError
from deniable.estimators.mechanisms.directed_rounding import quotient_above, sum_above
from deniable.producers.budget.charging import Ints
from deniable.producers.budget.lateness import CLOCK_SECONDS

_UNKNOWN = -1


class CollectionLimits:
    """Limits of one collection, which outlive the open store. Used by one thread at a time.

    Construction computes the limit of clients without earlier spending, which takes seconds for some
    mechanisms: do not do it while the store is open.

    Parameters
    ----------
    allowance : of the collection.

    Attributes
    ----------
    is_scanned : whether `note` has seen all clients in the store.
    seconds_ahead : how far the horizon is ahead of the clock's, see `deniable.producers.budget.charging`.
    """

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.is_scanned = False
        self.seconds_ahead = 0
        self._has_warned = False
        self._limits = np.full(LEVELS + 1, _UNKNOWN, np.int64)
        self._until = 0
        # Most reports in the period that ends at `_until`, by level of earlier spending.
        self._largest: dict[int, int] = {}
        self.find_limit(0)

    def limits(self, carried: NDArray[np.floating]) -> Ints:
        """Return the reports under the present parameters that one period allows, int64 (n,).

        Parameters
        ----------
        carried : floats (n,), epsilon at delta = 0, >= 0.

        Raises
        ------
        UnknownLimitError if a limit must be computed first.
        """
        levels = self.allowance.levels(carried)
        limits: Ints = self._limits[levels]
        unknown = levels[limits == _UNKNOWN]
        if len(unknown):
            raise UnknownLimitError(self, int(unknown[0]))
        return limits

    def find_limit(self, level: int) -> None:
        """Compute the limit of one level, in [0, LEVELS]; takes seconds for some mechanisms."""
        (self._limits[level],) = self.allowance.limits(np.array([level]))

    def note(self, balances: NDArray[np.void]) -> None:
        """Take balances into account, CLIENT_BALANCE (n,) as returned by `bring_up_to_date`."""
        if self.allowance.budget is None or not len(balances):
            return
        until = int(balances["until"].max())
        if until > self._until:
            self._until, self._largest = until, {}
        levels = self.allowance.levels(balances["carried"])
        for level in np.flatnonzero(np.bincount(levels)).tolist():
            most = int(balances["reports"][levels == level].max())
            self._largest[level] = max(most, self._largest.get(level, 0))

    def largest_ratio(self, now: float) -> float:
        """Return the largest share of its budget that a client has spent in this period; 0 without a budget.

        Parameters
        ----------
        now : unix seconds.
        """
        budget = self.allowance.budget
        if budget is None or now >= self._until:
            return 0.0
        largest, most = 0.0, -1
        for level in sorted(self._largest, reverse=True):
            reports = self._largest[level]
            # A client that carried less and reported no more has spent less: skip it.
            if reports > most:
                most = reports
                spent = quotient_above(self.allowance.epsilon(reports), budget.epsilon)
                largest = max(largest, sum_above(level / LEVELS, spent))
        return min(1.0, largest)

    def warning(self) -> str | None:
        """Return a warning about the clock; None if the clock is right or the warning was given before."""
        had_warned, self._has_warned = self._has_warned, self.seconds_ahead > CLOCK_SECONDS
        if had_warned or not self._has_warned:
            return None
        return (
            f"collection {self.allowance.collection.name}: windows close {self.seconds_ahead} s too early by "
            "this machine's clock, and until then reports of known clients may be refused as too_late: the "
            "clock was ahead or is behind (correct it), or windows or grace were shorter (stop producers "
            "that still use the former ones with this folder)"
        )


class UnknownLimitError(DeniableError, RuntimeError):
    """A limit must be computed before clients can be charged, with the store closed: it may take seconds."""

    def __init__(self, limits: CollectionLimits, level: int) -> None:
        name = limits.allowance.collection.name
        super().__init__(f"the limit of {name} at level {level} must be computed before clients are charged")
        self._limits = limits
        self._level = level

    def find(self) -> None:
        """Compute it."""
        self._limits.find_limit(self._level)
