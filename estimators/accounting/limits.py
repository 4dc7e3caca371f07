"""The bound `exact` alone, remembered: what budgets ask for again and again, at many levels of spending."""

from functools import cache

from deniable.estimators.accounting.accountant import Subject, costs, is_endless, most_reports
from deniable.estimators.accounting.bisection import largest_within
from deniable.estimators.accounting.changing_values import ChangingResponses


@cache
def exact_cost(subject: Subject, reports: int, delta: float, memoized: bool) -> float:
    """Return `exact` of `accountant.costs`."""
    return costs(subject, reports, delta, memoized, ("exact",))["exact"]


@cache
def exactly_allowed(subject: Subject, budget: float, delta: float, memoized: bool) -> int | None:
    """Return `exact` of `accountant.allowed_reports`, in a fraction of its time.

    The first steps of the search are the same for every budget, so what is left of one after earlier spending
    costs only the last steps.
    """
    if isinstance(subject, ChangingResponses):
        return subject.allowed(budget)
    if is_endless("exact", subject, budget, delta, memoized):
        return None
    most = most_reports(subject, memoized)
    return largest_within(lambda reports: exact_cost(subject, reports, delta, memoized), budget, 0, most)
