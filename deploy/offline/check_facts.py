"""A collection's cost and limits, for programs."""

from collections.abc import Sequence

import msgspec

from deniable.config.describe import condition_for_ever, condition_of_limit
from deniable.config.sections import RelaySection
from deniable.config.settings.allowance import UNLIMITED, Allowance
from deniable.deploy.offline.costs.memory import MemoryFacts, memory_facts
from deniable.deploy.offline.costs.sharing import DEFAULT_CLIENTS, SharingFacts, sharing_facts
from deniable.deploy.offline.costs.shuffled_facts import ShuffledFacts, shuffled_facts
from deniable.deploy.offline.costs.spent_facts import finite
from deniable.estimators.mechanisms.directed_rounding import exp_above


class BudgetFacts(msgspec.Struct, frozen=True):
    """What all reports of one client in a period may cost, and how many that allows; None for any number.

    `values` is what that number holds for: `unchanged`, while a client's value stays the same, or `any`.
    `epsilon_of_any_values` is what so many reports cost whatever the values do, rounded up, at delta; None if
    nothing bounds it. `epsilon_of_any_values_condition` is the condition of that; None if it needs none.
    `changes` is the number of changes of bucket that a budget of `local-hash-longitudinal` covers; None for
    any number, and for all other mechanisms.
    """

    epsilon: float
    delta: float
    period_seconds: int
    reports_per_period: int | None
    changes: int | None
    values: str
    epsilon_of_any_values: float | None
    epsilon_of_any_values_condition: str | None


class CollectionFacts(msgspec.Struct, frozen=True):
    """What `check` says of one collection. Epsilons in nats, rounded up; None stands for infinite.

    `epsilon_of_any_values` bounds all reports of a client whatever its values do, under a budget for as many
    changes as that covers (as producers in Python keep them), on the condition
    `epsilon_of_any_values_condition`, None if it needs none. `epsilon_of_all_buckets`, of values in all
    buckets if it is known when they change, as browsers may show them whatever the budget, is None but for
    `local-hash-longitudinal`. `sharing` is None but for local hashing, `shuffled_by_relays` without a section
    relay.
    """

    name: str
    mechanism: str
    fingerprint: str
    window_seconds: int
    grace_seconds: int
    epsilon_per_report: float
    odds_factor_per_report: float
    epsilon_of_unchanged_value: float | None
    epsilon_of_any_values: float | None
    epsilon_of_any_values_condition: str | None
    epsilon_of_all_buckets: float | None
    reports_per_window: int
    budget: BudgetFacts | None
    memory: MemoryFacts
    sharing: SharingFacts | None = None
    shuffled_by_relays: ShuffledFacts | None = None


class FileFacts(msgspec.Struct, frozen=True):
    """What `check` says of the file; `connection_error` is None if commands could connect with it."""

    version: int
    collections: Sequence[CollectionFacts]
    connection_error: str | None


def facts_of(
    allowance: Allowance, relay: RelaySection | None = None, clients: int = DEFAULT_CLIENTS
) -> CollectionFacts:
    """Return a collection's cost and limits; takes seconds for some mechanisms with a budget.

    Parameters
    ----------
    allowance : of the collection.
    relay : the section of the file, if there is one.
    clients : expected in a window, for `sharing`.
    """
    collection, budget = allowance.collection, allowance.budget
    mechanism, limit = collection.mechanism, allowance.unspent_limit
    known = condition_for_ever(mechanism, allowance.changes) if allowance.memoized else ""
    of_limit = allowance.epsilon_inf("any") if limit == UNLIMITED else allowance.epsilon(limit, "any")
    return CollectionFacts(
        collection.name,
        mechanism.name,
        f"{collection.fingerprint:016x}",
        collection.window_seconds,
        collection.grace_seconds,
        mechanism.epsilon,
        exp_above(mechanism.epsilon),
        finite(allowance.epsilon_inf("unchanged")),
        finite(allowance.epsilon_inf("any")),
        known or None,
        mechanism.epsilon_of_all_buckets,
        allowance.reports_per_window,
        None
        if budget is None
        else BudgetFacts(
            budget.epsilon,
            budget.delta,
            budget.period_seconds,
            None if limit == UNLIMITED else limit,
            budget.changes,
            allowance.values,
            finite(of_limit),
            condition_of_limit(allowance, limit) or None,
        ),
        memory_facts(collection),
        sharing_facts(collection, clients),
        None if relay is None else shuffled_facts(allowance, relay),
    )
