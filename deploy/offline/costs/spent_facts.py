"""What clients have spent, for programs."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from deniable.config.describe import KNOWN_VALUES, condition_for_ever
from deniable.config.settings.allowance import Allowance
from deniable.estimators.mechanisms.directed_rounding import quotient_above
from deniable.producers.budget.statement import Spent, total


class SpentBudget(msgspec.Struct, frozen=True):
    """The budget of a collection, and the share of it that is spent.

    `values` is what it holds for: `unchanged`, while a client's value stays the same, or `any`. `spent_share`
    is of the epsilon of such values, rounded up; None if that is not known.
    """

    epsilon: float
    delta: float
    period_seconds: int
    changes: int | None
    values: str
    spent_share: float | None


class SpentFigures(msgspec.Struct, frozen=True):
    """What a client has spent in one collection, or in all. Epsilons in nats, rounded up.

    `epsilon_of_unchanged_value` holds while the client's value stays the same, `epsilon_of_any_values`
    whatever its values do, on the condition `epsilon_of_any_values_condition`, None if it needs none: it
    bounds what reports reveal beyond when they change. Both are of the present period; those that begin with
    `lifetime` are of all, on the same condition. All hold at `delta`; None if a figure is not known.
    """

    reports: int
    epsilon_of_unchanged_value: float | None
    epsilon_of_any_values: float | None
    epsilon_of_any_values_condition: str | None
    delta: float
    lifetime_reports: int
    lifetime_epsilon_of_unchanged_value: float | None
    lifetime_epsilon_of_any_values: float | None


class SpentInCollection(SpentFigures, frozen=True):
    """The figures of one collection; `budget` is None without one, and where it is not in the file."""

    name: str
    is_in_file: bool
    budget: SpentBudget | None


class ClientSpent(msgspec.Struct, frozen=True):
    """What the client of a line of stdin has spent, in each collection and in all together."""

    line: int
    collections: list[SpentInCollection]
    total: SpentFigures


class SpentFacts(msgspec.Struct, frozen=True):
    """What `spent --json` prints."""

    version: int
    clients: list[ClientSpent]


def client_spent(
    line: int, spending: Mapping[str, Spent], allowances: Mapping[str, Allowance]
) -> ClientSpent:
    """Return what the client of a line has spent.

    Parameters
    ----------
    line : of stdin, from 1.
    spending : by collection, as of Statements.
    allowances : of the collections in the file.
    """
    conditions = {name: _condition(allowances.get(name)) for name in spending}
    collections = [
        SpentInCollection(
            **_figures(spent, conditions[name]),
            name=name,
            is_in_file=name in allowances,
            budget=_budget(spent, allowances[name]) if name in allowances else None,
        )
        for name, spent in spending.items()
    ]
    together = "; ".join(sorted({condition for condition in conditions.values() if condition}))
    return ClientSpent(line, collections, SpentFigures(**_figures(total(spending.values()), together)))


def covered_epsilon(spent: Spent, allowance: Allowance) -> float:
    """Return the epsilon of the present period about the values that the budget covers."""
    return spent.epsilon if allowance.values == "unchanged" else spent.any_epsilon


def _condition(allowance: Allowance | None) -> str:
    """Return the condition of a figure of any values; of a collection that left the file it may need one."""
    if allowance is None:
        return KNOWN_VALUES
    return condition_for_ever(allowance.collection.mechanism, allowance.changes) if allowance.memoized else ""


def _figures(spent: Spent, condition: str) -> dict[str, Any]:
    return {
        "reports": spent.reports,
        "epsilon_of_unchanged_value": finite(spent.epsilon),
        "epsilon_of_any_values": finite(spent.any_epsilon),
        "epsilon_of_any_values_condition": condition or None,
        "delta": spent.delta,
        "lifetime_reports": spent.lifetime_reports,
        "lifetime_epsilon_of_unchanged_value": finite(spent.lifetime_epsilon),
        "lifetime_epsilon_of_any_values": finite(spent.lifetime_any_epsilon),
    }


def _budget(spent: Spent, allowance: Allowance) -> SpentBudget | None:
    if (budget := allowance.budget) is None:
        return None
    share = quotient_above(covered_epsilon(spent, allowance), budget.epsilon)
    return SpentBudget(
        budget.epsilon,
        budget.delta,
        budget.period_seconds,
        budget.changes,
        allowance.values,
        finite(share),
    )


def finite(figure: float) -> float | None:
    """Return the figure for JSON, which has no infinity."""
    return figure if math.isfinite(figure) else None
