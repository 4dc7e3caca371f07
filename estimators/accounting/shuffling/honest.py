"""Epsilon of a report among shuffled ones of which a stated share may be forged."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

from deniable.estimators.accounting.shuffling.amplification import shuffled_epsilon
from deniable.estimators.accounting.shuffling.blanket import Blanket, ShufflingRefusedError, blanket_of
from deniable.estimators.accounting.shuffling.line_integral import Enclosure
from deniable.estimators.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class HonestShuffle:
    """What is decided before looking: all but the number of reports that are shuffled together.

    Parameters
    ----------
    blanket : of the randomizer of all reports.
    delta : in [1e-100, 1).
    forged_share : of the shuffled reports, which hide nothing, in [0, 1].
    """

    blanket: Blanket
    delta: float
    forged_share: float

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        delta: float,
        forged_share: float,
        memoized: bool = False,
        reports_per_window: int = 1,
    ) -> Self:
        """Build it for a collection.

        Parameters
        ----------
        mechanism, memoized : see `blanket_of`.
        delta, forged_share : see the class.
        reports_per_window : that a client may send, >= 1.

        Raises
        ------
        ShufflingRefusedError if no epsilon of shuffled reports exists.
        """
        if reports_per_window > 1:
            raise ShufflingRefusedError(
                f"{reports_per_window} reports of a client may be in one shuffle, where they are not hidden"
                " from each other: state the epsilon of each, or use reports_per_window: 1"
            )
        return cls(blanket_of(mechanism, memoized), delta, forged_share)

    def honest(self, shuffled: int) -> int:
        """Return the honest ones among this many shuffled reports; see `honest_reports`."""
        return honest_reports(shuffled, self.forged_share)

    def epsilon(self, shuffled: int) -> Enclosure:
        """Enclose epsilon of a report among this many (>= 1) shuffled ones; see `shuffled_epsilon`."""
        return _epsilon(self.blanket, self.honest(shuffled), self.delta)


def honest_reports(shuffled: int, forged_share: float) -> int:
    """Return the honest ones among this many shuffled reports, rounded down to three digits, >= 1.

    The report in question is one of them.
    """
    share = 1 - Fraction(str(forged_share))  # as it is written: 0.1 of 10 is 1
    number = max(1, math.floor(shuffled * share))
    unit = int("1" + "0" * max(0, len(str(number)) - 3))
    return number // unit * unit


@lru_cache(maxsize=4096)
def _epsilon(blanket: Blanket, reports: int, delta: float) -> Enclosure:
    return shuffled_epsilon(blanket, reports, delta)
