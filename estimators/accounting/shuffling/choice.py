"""The largest epsilon of a report whose shuffled reports keep within a wanted one."""

from collections.abc import Callable

from deniable.estimators.accounting.shuffling.amplification import (
    check_delta,
    check_reports,
    mean_positive_part,
)
from deniable.estimators.accounting.shuffling.blanket import blanket_of
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.mechanism import Mechanism

#: Relative precision of the epsilon found, and the least one that is asked for.
PRECISION = 1e-4
LEAST_SHUFFLED_EPSILON = 1e-3


def largest_for_shuffled(
    build: Callable[[float], Mechanism], reports: int, shuffled_epsilon: float, delta: float
) -> float:
    """Find the largest epsilon of one report with which n shuffled ones keep within another epsilon.

    Parameters
    ----------
    build : the mechanism of an epsilon, nats, in [1e-3, 16]; more epsilon hides no more.
    reports : n, honest ones shuffled together, in [1, 10^12].
    shuffled_epsilon : nats, in [1e-3, 16].
    delta : in [1e-100, 1).

    Returns
    -------
    Nats, in [shuffled_epsilon, 16]; it is at most a relative 1e-4 below the largest.

    Raises
    ------
    ValueError if a parameter is out of range; ShufflingRefusedError as for `blanket_of`.
    """
    check_reports(reports)
    check_delta(delta)
    if not LEAST_SHUFFLED_EPSILON <= shuffled_epsilon <= LARGEST_EPSILON:
        raise ValueError(
            f"shuffled epsilon must be in [{LEAST_SHUFFLED_EPSILON}, {LARGEST_EPSILON}],"
            f" got {shuffled_epsilon}"
        )

    def is_within(epsilon: float) -> bool:
        atoms = blanket_of(build(epsilon)).atoms
        return mean_positive_part(atoms, reports, shuffled_epsilon, delta / 8, 1e-3).high <= delta

    # Upwards by doubling: far above the epsilon sought, to enclose delta takes ten times as long as near it.
    low, high = shuffled_epsilon, min(2 * shuffled_epsilon, LARGEST_EPSILON)
    while is_within(high):
        if high == LARGEST_EPSILON:
            return float(high)
        low, high = high, min(2 * high, LARGEST_EPSILON)
    while high > low * (1 + PRECISION):
        middle = (low * high) ** 0.5
        if is_within(middle):
            low = middle
        else:
            high = middle
    return low
