"""What is known of one collection while its store is closed: limits, and the most that a client has spent."""

import numpy as np
from numpy.typing import NDArray

from estimators.errors import DeniableError
from producers.budget.allowance import LEVELS, Allowance
from producers.budget.charging import Ints
from producers.budget.lateness import CLOCK_SECONDS

_UNKNOWN = -1


class CollectionLimits:
    """It outlives the closing of the store. Used by one thread at a time.

    Making one finds the limit of who has carried nothing, which takes seconds for some mechanisms: not to be
    done while the store is open.

    Parameters
    ----------
    allowance : of the collection.

    Attributes
    ----------
    is_scanned : whether `note` was told of all clients in the store.
    seconds_ahead : by how much the horizon exceeds what the clock asks for, see `producers.budget.charging`.
    """

    def __init__(self, allowance: Allowance) -> None:
        self.allowance = allowance
        self.is_scanned = False
        self.seconds_ahead = 0
        self._is_told = False
        self._limits = np.full(LEVELS + 1, _UNKNOWN, np.int64)
        self._until = 0
        # Most reports in the period that ends at `_until`, by level of what was carried into it.
        self._largest: dict[int, int] = {}
        self.find_limit(0)

    def limits(self, carried: NDArray[np.floating]) -> Ints:
        """Reports under the present parameters that one period allows, int64 (n,).

        Parameters
        ----------
        carried : floats (n,), epsilon at delta = 0, >= 0.

        Raises
        ------
        UnknownLimitError if one of them must be found first.
        """
        levels = self.allowance.levels(carried)
        limits: Ints = self._limits[levels]
        unknown = levels[limits == _UNKNOWN]
        if len(unknown):
            raise UnknownLimitError(self, int(unknown[0]))
        return limits

    def find_limit(self, level: int) -> None:
        """Find the limit of one level, in [0, LEVELS]. Takes seconds, for some mechanisms."""
        (self._limits[level],) = self.allowance.limits(np.array([level]))

    def note(self, heads: NDArray[np.void]) -> None:
        """Take clients into account, HEAD (n,) as of `producers.budget.client_balance.bring_up_to_date`."""
        if self.allowance.budget is None or not len(heads):
            return
        until = int(heads["until"].max())
        if until > self._until:
            self._until, self._largest = until, {}
        levels = self.allowance.levels(heads["carried"])
        for level in np.flatnonzero(np.bincount(levels)).tolist():
            most = int(heads["reports"][levels == level].max())
            self._largest[level] = max(most, self._largest.get(level, 0))

    def largest_ratio(self, now: float) -> float:
        """Largest share of its budget that a client has spent in this period; 0 without a budget.

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
            # Who carried less and reported no more has spent less: it need not be accounted for.
            if reports > most:
                most = reports
                largest = max(largest, level / LEVELS + self.allowance.epsilon(reports) / budget.epsilon)
        return min(1.0, largest)

    def warning(self) -> str | None:
        """What an operator must know of the clock; None if there is nothing, or it was told."""
        was_told, self._is_told = self._is_told, self.seconds_ahead > CLOCK_SECONDS
        if was_told or not self._is_told:
            return None
        return (
            f"collection {self.allowance.collection.name}: windows are closed {self.seconds_ahead} s before "
            "this machine's clock says so, and clients that have reported may be refused as too_late so "
            "long: the clock was ahead or is behind (set it right), or windows or grace were shorter (stop "
            "who uses the folder with the former ones)"
        )


class UnknownLimitError(DeniableError, RuntimeError):
    """A limit must be found before clients can be charged: with the store closed, since it takes seconds."""

    def __init__(self, standing: CollectionLimits, level: int) -> None:
        name = standing.allowance.collection.name
        super().__init__(f"the limit of {name} at level {level} must be found before clients are charged")
        self._standing = standing
        self._level = level

    def find(self) -> None:
        """Find it."""
        self._standing.find_limit(self._level)
