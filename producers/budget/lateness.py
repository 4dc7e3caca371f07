"""Find reports that come too early or too late to be counted, whatever their values."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.protocol.wire import EARLY_SECONDS

# The log's clock decides. A report is refused here only if it is untimely for any plausible clock of the log.
CLOCK_SECONDS = 300


class Untimely(NamedTuple):
    """Reports that cannot be counted: bool (n,) each."""

    too_early: NDArray[np.bool_]
    too_late: NDArray[np.bool_]


def untimely(collection: Collection, windows: NDArray[np.int64], now: float) -> Untimely:
    """Find reports that the aggregator will reject, if clocks differ by at most CLOCK_SECONDS.

    Parameters
    ----------
    collection : Collection.
    windows : int64 (n,), window start of each report, unix seconds.
    now : unix seconds of this machine.
    """
    earliest = math.ceil(now - CLOCK_SECONDS - collection.closes_at(0))
    latest = math.floor(now + CLOCK_SECONDS + EARLY_SECONDS)
    return Untimely(too_early=windows > latest, too_late=windows < earliest)
