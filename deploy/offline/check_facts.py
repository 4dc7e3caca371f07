"""A collection's cost and limits, for programs."""

import math
from collections.abc import Sequence

import msgspec

from producers.budget.allowance import UNLIMITED, Allowance


class BudgetFacts(msgspec.Struct, frozen=True):
    """What all reports of one client in a period may cost, and how many that allows; None for any number."""

    epsilon: float
    delta: float
    period_seconds: int
    reports_per_period: int | None


class CollectionFacts(msgspec.Struct, frozen=True):
    """What `check` says of one collection. Epsilons in nats; None stands for infinite."""

    name: str
    mechanism: str
    fingerprint: str
    window_seconds: int
    grace_seconds: int
    epsilon_per_report: float
    odds_factor_per_report: float
    epsilon_of_unchanged_value: float | None
    reports_per_window: int
    budget: BudgetFacts | None


class FileFacts(msgspec.Struct, frozen=True):
    """What `check` says of the file; `connection_error` is None if commands could connect with it."""

    version: int
    collections: Sequence[CollectionFacts]
    connection_error: str | None


def facts_of(allowance: Allowance) -> CollectionFacts:
    """Return a collection's cost and limits; takes seconds for some mechanisms with a budget."""
    collection, budget = allowance.collection, allowance.budget
    epsilon, limit = collection.mechanism.epsilon, allowance.unspent_limit
    unchanged = allowance.epsilon_inf
    return CollectionFacts(
        collection.name,
        collection.mechanism.name,
        f"{collection.fingerprint:016x}",
        collection.window_seconds,
        collection.grace_seconds,
        epsilon,
        math.exp(epsilon),
        None if math.isinf(unchanged) else unchanged,
        allowance.reports_per_window,
        None
        if budget is None
        else BudgetFacts(
            budget.epsilon, budget.delta, budget.period_seconds, None if limit == UNLIMITED else limit
        ),
    )
