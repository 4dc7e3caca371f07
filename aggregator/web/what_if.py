"""Expected errors of a collection at other epsilons: the what-if of the live page."""

import math
from functools import lru_cache

import msgspec

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.mechanism import Mechanism, at_epsilon, epsilon_range
from deniable.estimators.planning import expected_std_error, smallest_detectable

STEPS = 48  # of epsilon, each larger by the same factor
PLANS_KEPT = 256


class Plan(msgspec.Struct, frozen=True):
    """Expected errors for a number of reports, by epsilon; columns have equal length.

    `now` describes the collection's own mechanism, with columns of length 1. `std_error` is that of a rare
    value. `detectable` is the smallest share detected with probability 0.9, null if there is none. Both are
    fractions of all reports.
    """

    collection: str
    reports: int
    now: "Errors"
    others: "Errors"


class Errors(msgspec.Struct, frozen=True):
    """Columns of a `Plan`."""

    epsilon: list[float]
    std_error: list[float]
    detectable: list[float | None]


@lru_cache(PLANS_KEPT)
def plan(collection: Collection, reports: int) -> Plan:
    """Compute the expected errors at each epsilon; takes tens of milliseconds.

    Parameters
    ----------
    collection : gives the mechanism and the number of values.
    reports : of one window, in [1, 10^18].

    Raises
    ------
    ValueError if reports is out of range.
    """
    mechanism = collection.mechanism
    least, most = epsilon_range(mechanism)
    steps = [least * (most / least) ** (step / STEPS) for step in range(STEPS)] + [most]
    steps[_nearest(steps, mechanism.epsilon)] = min(most, mechanism.epsilon)
    values = max(1, collection.entries)
    others = [at_epsilon(mechanism, epsilon) for epsilon in steps]
    return Plan(
        collection=collection.name,
        reports=reports,
        now=_errors([mechanism], values, reports),
        others=_errors(others, values, reports),
    )


def _nearest(steps: list[float], epsilon: float) -> int:
    """Index of the step to replace by the collection's own epsilon, where the page starts."""
    return min(range(len(steps)), key=lambda place: abs(math.log(steps[place] / epsilon)))


def _errors(mechanisms: list[Mechanism], values: int, reports: int) -> Errors:
    found = [smallest_detectable(mechanism, reports, values) for mechanism in mechanisms]
    return Errors(
        epsilon=[mechanism.epsilon for mechanism in mechanisms],
        std_error=[expected_std_error(mechanism, reports, candidates=values) for mechanism in mechanisms],
        detectable=[share if math.isfinite(share) else None for share in found],
    )
