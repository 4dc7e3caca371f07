"""The most that one client can have spent of a budget in the present period so far."""

from typing import NamedTuple

from deniable.config.settings.allowance import Allowance, Budget
from deniable.estimators.mechanisms.directed_rounding import quotient_above
from deniable.producers.budget.lateness import CLOCK_SECONDS
from deniable.protocol.wire import EARLY_SECONDS

STEPS = 32  # steps between powers of two, to which numbers of reports are rounded up


class Exposure(NamedTuple):
    """The most that one client can have spent.

    Parameters
    ----------
    reports : of one client, at most.
    epsilon : joint loss of these reports at the budget's delta, about values as the budget says; nats.
    ratio : of epsilon to the budget, rounded up, in [0, 1].
    any_epsilon : the same loss as `epsilon`, whatever the values do.
    """

    reports: int
    epsilon: float
    ratio: float
    any_epsilon: float


def exposure(allowance: Allowance, budget: Budget, now: float) -> Exposure:
    """Return what a client has spent that reports as often as allowed; takes seconds for some mechanisms.

    Parameters
    ----------
    allowance : of the collection. Spending under earlier parameters is unknown here.
    budget : of the allowance.
    now : unix seconds, by a clock that agrees with those of producers.
    """
    reports = min(rounded_up(_reports_let(allowance, budget, now)), allowance.unspent_limit)
    # The limit keeps it within the budget, but beyond the accountant's range the bound may exceed it.
    epsilon = min(allowance.epsilon(reports), budget.epsilon)
    ratio = min(quotient_above(epsilon, budget.epsilon), 1.0)
    any_epsilon = allowance.epsilon(reports, "any") if allowance.values == "unchanged" else epsilon
    return Exposure(reports, epsilon, ratio, any_epsilon)


def rounded_up(number: int) -> int:
    """Round up to six significant binary digits.

    Numbers below 65 stay, others grow by at most 1 / STEPS, so a long period has few numbers to account for.
    """
    step = 1 << max(0, number.bit_length() - STEPS.bit_length())
    return -(-number // step) * step


def _reports_let(allowance: Allowance, budget: Budget, now: float) -> int:
    """Return the reports that one client could have sent in this period without a budget.

    Counts every window that was open since the period began, or begins so soon that producers accept its
    reports because of differing clocks.
    """
    seconds = allowance.collection.window_seconds
    begin = int(now // budget.period_seconds) * budget.period_seconds
    first = -((allowance.collection.closes_at(0) - begin) // seconds)
    last = int(now + CLOCK_SECONDS + EARLY_SECONDS) // seconds
    return (last - first + 1) * allowance.reports_per_window
