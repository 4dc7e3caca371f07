"""Privacy accounting: what n reports of one client cost, and how many reports a budget allows."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial

from estimators.accounting.bisection import largest_within, last_before
from estimators.accounting.composition import epsilon_at
from estimators.accounting.memoized_krr import shared_krr_loss
from estimators.accounting.memoized_rappor import shared_bits_loss
from estimators.accounting.privacy_loss import PrivacyLoss, bits_loss, krr_loss, longitudinal_loss
from estimators.accounting.renyi import epsilon_from_renyi, epsilon_from_rho, zcdp_rho
from estimators.mechanisms.krr import KRR
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.mechanism import Mechanism
from estimators.mechanisms.rappor_bits import WORDS, TwoStepBits

LARGEST_REPORTS = 100_000
LARGEST_MEMOIZED = 10_000
LARGEST_OUTPUTS = 1_000_000

#: Epsilon of a loss at a delta, four times: exact <= rdp <= min(basic, zcdp).
BOUNDS: dict[str, Callable[[PrivacyLoss, float], float]] = {
    "basic": lambda loss, _: loss.largest,
    "zcdp": lambda loss, delta: epsilon_from_rho(zcdp_rho(loss), delta),
    "rdp": epsilon_from_renyi,
    "exact": lambda loss, delta: min(epsilon_at(loss, delta), epsilon_from_renyi(loss, delta)),
}


def costs(mechanism: Mechanism, reports: int, delta: float, memoized: bool = False) -> dict[str, float]:
    """Epsilon at a delta of all reports of one client about one value together, by every bound.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, Rappor or HotRappor.
    reports : n in [1, `most_reports`]: 100,000, when memoized 10,000, unless a value sets many bits.
    delta : in (0, 1).
    memoized : the reports share one permanent response; those of a KRR are one report, repeated. Else each
        is randomized anew from the true value.

    Returns
    -------
    Nats, by name: `basic`, the largest loss, which holds at delta = 0; `zcdp`, of the tight rho; `rdp`, of
    the tight RDP curve; `exact`, of the distribution of the loss. When memoized, all four are those of the
    joint distribution of the n reports (of which the largest loss can exceed n times that of one), and none
    exceeds epsilon_inf; of a LongitudinalKRR with k > 3 and n > 30 they are bounds from above, `exact` by
    less than 3 % in tests.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: that of each bound's function.
    """
    _check("delta", delta, 1)
    most = most_reports(mechanism, memoized)
    if not 1 <= reports <= most:
        raise ValueError(f"reports must be in [1, {most}], got {reports}")
    loss = loss_of_reports(mechanism, reports, memoized)
    cap = epsilon_inf(mechanism, memoized) if memoized else math.inf
    return {name: min(bound(loss, delta), cap) for name, bound in BOUNDS.items()}


def allowed_reports(
    mechanism: Mechanism, budget: float, delta: float, memoized: bool = False
) -> dict[str, int | None]:
    """Count the reports whose epsilon at a delta, as of `costs`, is within a budget, by every bound.

    No bound falls as reports are added, and exact <= rdp <= min(basic, zcdp): so that of `rdp` is found
    first, and is where the others begin or end.

    Parameters
    ----------
    mechanism, delta, memoized : as of `costs`.
    budget : epsilon, in (0, inf), nats.

    Returns
    -------
    By name of the bound: 0 where one report exceeds the budget; the largest number that `costs` takes stands
    for that many or more; None, when memoized, where the permanent response itself is within the budget, and
    so is any number of reports made from it.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    _check("budget", budget, math.inf)
    _check("delta", delta, 1)
    cap = epsilon_inf(mechanism, memoized) if memoized else math.inf
    most = most_reports(mechanism, memoized)
    found: dict[str, int | None] = dict.fromkeys(BOUNDS)
    bounded = list(BOUNDS)
    if math.isfinite(cap):
        permanent = _loss_of_permanent_response(mechanism)
        bounded = [name for name, bound in BOUNDS.items() if min(bound(permanent, delta), cap) > budget]

    @cache
    def loss(reports: int) -> PrivacyLoss:
        return loss_of_reports(mechanism, reports, memoized)

    @cache
    def epsilon(name: str, reports: int) -> float:
        return min(BOUNDS[name](loss(reports), delta), cap)

    rdp = largest_within(partial(epsilon, "rdp"), budget, 0, most) if "rdp" in bounded else most
    for name in bounded:
        figure = partial(epsilon, name)
        if name == "rdp":
            found[name] = rdp
        elif name == "exact":
            found[name] = largest_within(figure, budget, rdp, most)
        elif name == "basic":
            found[name] = largest_within(figure, budget, 0, rdp)
        elif rdp == most and figure(most) <= budget:
            found[name] = most
        else:
            found[name] = last_before(figure, budget, 0, min(rdp + 1, most))
    return found


def epsilon_inf(mechanism: Mechanism, memoized: bool) -> float:
    """Privacy loss of any number of reports that share a permanent response.

    Parameters
    ----------
    mechanism : KRR, LongitudinalKRR, Rappor or HotRappor.
    memoized : True when a KRR repeats one report, its only permanent response; of no effect on the others.

    Returns
    -------
    Nats, rounded up; inf where unbounded.
    """
    if isinstance(mechanism, KRR):
        return mechanism.epsilon if memoized else math.inf
    return mechanism.epsilon_inf


def loss_of_reports(mechanism: Mechanism, reports: int, memoized: bool) -> PrivacyLoss:
    """Build the distribution of the privacy loss of several reports.

    Parameters
    ----------
    mechanism, reports, memoized : as of `costs`.

    Returns
    -------
    PrivacyLoss of all reports together.

    Source: that of the functions it asks, one for each mechanism.
    """
    match mechanism:
        case KRR():
            return krr_loss(mechanism).times(1 if memoized else reports)
        case LongitudinalKRR() if memoized:
            return shared_krr_loss(mechanism, reports)
        case LongitudinalKRR():
            return longitudinal_loss(mechanism).times(reports)
        case _ if memoized:
            return shared_bits_loss(mechanism, reports)
        case _:
            return bits_loss(mechanism).times(reports)


def _loss_of_permanent_response(mechanism: Mechanism) -> PrivacyLoss:
    """Loss of what memoized reports are made from; not for flip_threshold = 0, which hides nothing."""
    match mechanism:
        case KRR():
            return krr_loss(mechanism)
        case LongitudinalKRR():
            return krr_loss(mechanism.permanent)
        case _:
            flip = Fraction(mechanism.flip_threshold, WORDS)
            return PrivacyLoss.of_three_atoms((1 - flip) ** 2, flip**2, mechanism.ones)


def most_reports(mechanism: Mechanism, memoized: bool) -> int:
    """Tell the largest number of reports that is accounted for.

    Parameters
    ----------
    mechanism, memoized : as of `costs`.

    Returns
    -------
    100,000, and 10,000 when memoized; of RAPPOR not so many that they are more than 1,000,000 bits that may
    differ each way.
    """
    most = LARGEST_MEMOIZED if memoized else LARGEST_REPORTS
    return min(most, LARGEST_OUTPUTS // mechanism.ones) if isinstance(mechanism, TwoStepBits) else most


def _check(name: str, value: float, end: float) -> None:
    if not 0 < value < end:
        raise ValueError(f"{name} must be in (0, {end}), got {value}")
