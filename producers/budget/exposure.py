"""What one client can have spent of a budget in the present period so far: a bound that needs no client."""

from typing import NamedTuple

from producers.budget.allowance import Allowance, Budget
from producers.budget.lateness import CLOCK_SECONDS
from producers.wire import EARLY_SECONDS

STEPS = 32  # numbers that reports are rounded up to, between a power of two and the next


class Exposure(NamedTuple):
    """The most that one client can have spent.

    Parameters
    ----------
    reports : of one client, at most.
    epsilon : of so many about one value together, at the budget's delta; nats.
    ratio : of epsilon to the budget, in [0, 1].
    """

    reports: int
    epsilon: float
    ratio: float


def exposure(allowance: Allowance, budget: Budget, now: float) -> Exposure:
    """What a client has spent that reports as often as it is let. May take seconds, for some mechanisms.

    Parameters
    ----------
    allowance : of the collection. What was spent under earlier parameters is not known here.
    budget : of the allowance.
    now : unix seconds, by a clock that agrees with that of producers.
    """
    reports = min(rounded_up(_reports_let(allowance, budget, now)), allowance.unspent_limit)
    # The limit keeps it within the budget; where no number is accounted for, the bound may lie above.
    epsilon = min(allowance.epsilon(reports), budget.epsilon)
    return Exposure(reports, epsilon, epsilon / budget.epsilon)


def rounded_up(number: int) -> int:
    """The smallest number from this one on that is six binary digits and then zeros.

    It exceeds none below 65, others by 1 / STEPS at most: a long period has few numbers to account for.
    """
    step = 1 << max(0, number.bit_length() - STEPS.bit_length())
    return -(-number // step) * step


def _reports_let(allowance: Allowance, budget: Budget, now: float) -> int:
    """Reports that one client could send in this period so far if there were no budget.

    In every window that was still open when the period began, or was open since, or begins so soon that
    producers take its reports for events of other clocks.
    """
    seconds = allowance.collection.window_seconds
    begin = int(now // budget.period_seconds) * budget.period_seconds
    first = -((allowance.collection.closes_at(0) - begin) // seconds)
    last = int(now + CLOCK_SECONDS + EARLY_SECONDS) // seconds
    return (last - first + 1) * allowance.reports_per_window
