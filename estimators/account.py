"""Privacy accounting: what n reports of one client cost, and how many reports a budget allows."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

from estimators.composition import epsilon_at
from estimators.krr import KRR
from estimators.longitudinal import LongitudinalKRR
from estimators.privacy_loss import PrivacyLoss, bits_loss, krr_loss, longitudinal_loss
from estimators.rappor import Rappor
from estimators.rappor_hot import HotRappor
from estimators.renyi import epsilon_from_renyi, epsilon_from_rho, zcdp_rho
from estimators.shared_bits import shared_bits_loss
from estimators.shared_krr import shared_krr_loss
from estimators.two_step import WORDS

LARGEST_REPORTS = 100_000
LARGEST_MEMOIZED = 10_000

Mechanism = KRR | LongitudinalKRR | Rappor | HotRappor

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
    reports : n in [1, 100000], when memoized in [1, 10000].
    delta : in (0, 1).
    memoized : the reports share one permanent response; those of a KRR are one report, repeated. Else each
        is randomized anew from the true value.

    Returns
    -------
    Nats, by name: `basic`, the largest loss, which holds at delta = 0; `zcdp`, of the tight rho; `rdp`, of
    the tight RDP curve; `exact`, of the distribution of the loss. When memoized, all four are those of the
    joint distribution of the n reports (of which the largest loss can exceed n times that of one), and none
    exceeds epsilon_inf.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: that of each bound's function.
    """
    _check("delta", delta, 1)
    most = _most_reports(memoized)
    if not 1 <= reports <= most:
        raise ValueError(f"reports must be in [1, {most}], got {reports}")
    loss = loss_of_reports(mechanism, reports, memoized)
    cap = epsilon_inf(mechanism, memoized) if memoized else math.inf
    return {name: min(bound(loss, delta), cap) for name, bound in BOUNDS.items()}


def allowed_reports(
    mechanism: Mechanism, budget: float, delta: float, memoized: bool = False
) -> dict[str, int | None]:
    """Count the reports whose epsilon at a delta, as of `costs`, is within a budget, by every bound.

    No bound falls as reports are added, so doubling and bisection find the most.

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

    @cache
    def loss(reports: int) -> PrivacyLoss:
        return loss_of_reports(mechanism, reports, memoized)

    def allowed(bound: Callable[[PrivacyLoss, float], float]) -> int | None:
        def fits(loss: PrivacyLoss) -> bool:
            return min(bound(loss, delta), cap) <= budget

        if math.isfinite(cap) and fits(_loss_of_permanent_response(mechanism)):
            return None
        return _most(lambda reports: fits(loss(reports)), _most_reports(memoized))

    return {name: allowed(bound) for name, bound in BOUNDS.items()}


def epsilon_inf(mechanism: Mechanism, memoized: bool) -> float:
    """Privacy loss of any number of reports that share a permanent response, rounded up; inf where unbounded.

    A KRR has no permanent response, unless one report is `memoized` and repeated.
    """
    if isinstance(mechanism, KRR):
        return mechanism.epsilon if memoized else math.inf
    return mechanism.epsilon_inf


def loss_of_reports(mechanism: Mechanism, reports: int, memoized: bool) -> PrivacyLoss:
    """Distribution of the privacy loss of several reports; parameters as of `costs`."""
    match mechanism:
        case KRR():
            return krr_loss(mechanism).times(1 if memoized else reports)
        case LongitudinalKRR() if memoized:
            return shared_krr_loss(mechanism, reports)
        case LongitudinalKRR():
            return longitudinal_loss(mechanism).times(reports)
        case _ if memoized:
            return shared_bits_loss(mechanism, _ones(mechanism), reports)
        case _:
            return bits_loss(mechanism, _ones(mechanism)).times(reports)


def _loss_of_permanent_response(mechanism: Mechanism) -> PrivacyLoss:
    """Loss of what memoized reports are made from; not for flip_threshold = 0, which hides nothing."""
    match mechanism:
        case KRR():
            return krr_loss(mechanism)
        case LongitudinalKRR():
            return krr_loss(mechanism.permanent)
        case _:
            flip = Fraction(mechanism.flip_threshold, WORDS)
            return PrivacyLoss.of_three_atoms((1 - flip) ** 2, flip**2, _ones(mechanism))


def _ones(mechanism: Rappor | HotRappor) -> int:
    return mechanism.hashes if isinstance(mechanism, Rappor) else mechanism.hot


def _most_reports(memoized: bool) -> int:
    return LARGEST_MEMOIZED if memoized else LARGEST_REPORTS


def _check(name: str, value: float, end: float) -> None:
    if not 0 < value < end:
        raise ValueError(f"{name} must be in (0, {end}), got {value}")


def _most(fits: Callable[[int], bool], limit: int) -> int:
    """Largest number in [0, limit] that fits, where all below it do too; 0 is taken to fit."""
    good, bad = 0, 1
    while bad <= limit and fits(bad):
        good, bad = bad, 2 * bad
    bad = min(bad, limit + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fits(middle):
            good = middle
        else:
            bad = middle
    return good
