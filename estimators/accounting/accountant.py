"""Privacy accounting: epsilon of n reports of one client, and the number of reports that a budget allows."""

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache, partial

from deniable.estimators.accounting.bisection import largest_within, last_before
from deniable.estimators.accounting.changing_buckets import ChangingBuckets, hashed_subject
from deniable.estimators.accounting.changing_values import ChangingResponses
from deniable.estimators.accounting.composition import epsilon_at
from deniable.estimators.accounting.memoized_krr import shared_krr_loss
from deniable.estimators.accounting.memoized_rappor import shared_bits_loss
from deniable.estimators.accounting.privacy_loss import (
    PrivacyLoss,
    bits_loss,
    krr_loss,
    longitudinal_loss,
    pair_loss,
    square_wave_loss,
)
from deniable.estimators.accounting.renyi import epsilon_from_renyi, epsilon_from_rho, zcdp_rho
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.hashing.prefix_tree import PrefixTree
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.mechanism import Mechanism, bits_of
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_bits import WORDS
from deniable.estimators.mechanisms.rappor_hot import HotRappor
from deniable.estimators.mechanisms.square_wave import SquareWave

#: What is accounted: a mechanism, or memoized reports whose values may change (`changing`).
Subject = Mechanism | ChangingBuckets | ChangingResponses

LARGEST_REPORTS = 100_000
LARGEST_MEMOIZED = 10_000
LARGEST_OUTPUTS = 1_000_000

#: Four upper bounds on epsilon, given a loss and a delta: exact <= rdp <= min(basic, zcdp).
BOUNDS: dict[str, Callable[[PrivacyLoss, float], float]] = {
    "basic": lambda loss, _: loss.largest,
    "zcdp": lambda loss, delta: epsilon_from_rho(zcdp_rho(loss), delta),
    "rdp": epsilon_from_renyi,
    "exact": lambda loss, delta: min(epsilon_at(loss, delta), epsilon_from_renyi(loss, delta)),
}


def costs(
    mechanism: Subject,
    reports: int,
    delta: float,
    memoized: bool = False,
    bounds: Iterable[str] = tuple(BOUNDS),
) -> dict[str, float]:
    """Return epsilon at a delta, by each bound, of all reports of one client about one true value together.

    Parameters
    ----------
    mechanism : any, or what `changing` returns for values that change.
    reports : n in [1, `most_reports`]: 100,000, or 10,000 if memoized; fewer if a value sets many bits.
    delta : in (0, 1).
    memoized : True if the reports share one permanent response (mechanisms without one repeat one report).
        Otherwise each report is randomized afresh from the true value. Memoized reports of LongitudinalHash
        may be about values that change, in any of its buckets.
    bounds : which of BOUNDS to compute.

    Returns
    -------
    Epsilon in nats by name: `basic`, the largest loss, valid at delta = 0; `zcdp`, from the tight rho; `rdp`,
    from the tight RDP curve; `exact`, from the distribution of the loss. If memoized, all four are computed
    from the joint distribution of the n reports, whose largest loss can exceed n times that of one report,
    and none exceeds epsilon_inf. `exact` too is an upper bound for a LongitudinalKRR with k > 3 and n > 30,
    by less than 3 % in tests; for several reports of a PairKRR whose fields have different epsilons, by up to
    40 %; and for a HotRappor with `hot` above half of its buckets, by up to 100 %. For memoized
    ChangingBuckets all are upper bounds: the least of those of the reports, of the permanent responses, and
    of `largest_of`; for ChangingResponses all are `largest_of`.

    Raises
    ------
    ValueError if a parameter is out of range.

    Source: that of each bound's function.
    """
    _check("delta", delta, 1)
    most = most_reports(mechanism, memoized)
    if not 1 <= reports <= most:
        raise ValueError(f"reports must be in [1, {most}], got {reports}")
    if isinstance(mechanism, ChangingResponses):
        return dict.fromkeys(bounds, mechanism.largest_of(reports))
    loss = loss_of_reports(mechanism, reports, memoized)
    caps, largest = _caps(mechanism, delta, memoized), _largest_of(mechanism, reports, memoized)
    return {name: min(BOUNDS[name](loss, delta), caps[name], largest) for name in bounds}


def allowed_reports(
    mechanism: Subject, budget: float, delta: float, memoized: bool = False
) -> dict[str, int | None]:
    """Find the largest number of reports whose epsilon at a delta is within a budget, by each bound.

    No bound falls as reports are added, and exact <= rdp <= min(basic, zcdp). So the number for `rdp` is
    found first, and limits the search for the others.

    Parameters
    ----------
    mechanism : any, or what `changing` returns.
    budget : epsilon, nats, in (0, inf).
    delta : in (0, 1).
    memoized : True if the reports share one permanent response; see `costs`.

    Returns
    -------
    Number of reports by name of the bound: 0 if one report exceeds the budget; `most_reports` stands for that
    many or more; None, if memoized, when the permanent response itself is within the budget, so that any
    number of reports is.

    Raises
    ------
    ValueError if a parameter is out of range.
    """
    _check("budget", budget, math.inf)
    _check("delta", delta, 1)
    if isinstance(mechanism, ChangingResponses):
        return dict.fromkeys(BOUNDS, mechanism.allowed(budget))
    caps = _caps(mechanism, delta, memoized)
    most = most_reports(mechanism, memoized)
    found: dict[str, int | None] = dict.fromkeys(BOUNDS)
    bounded = [name for name in BOUNDS if not is_endless(name, mechanism, budget, delta, memoized)]

    @cache
    def loss(reports: int) -> PrivacyLoss:
        return loss_of_reports(mechanism, reports, memoized)

    @cache
    def epsilon(name: str, reports: int) -> float:
        largest = _largest_of(mechanism, reports, memoized)
        return min(BOUNDS[name](loss(reports), delta), caps[name], largest)

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


def epsilon_inf(mechanism: Subject, memoized: bool) -> float:
    """Privacy loss of any number of reports that share one permanent response, or one of each bucket.

    Parameters
    ----------
    mechanism : any, or what `changing` returns.
    memoized : True if a mechanism without a permanent response repeats one report; the others ignore it.

    Returns
    -------
    Nats, rounded up; inf if unbounded.
    """
    subject = _accounted(mechanism, memoized=True)
    if subject.keeps_permanent:
        return subject.epsilon_inf
    return subject.epsilon if memoized else math.inf


def loss_of_reports(mechanism: Subject, reports: int, memoized: bool) -> PrivacyLoss:
    """Build the distribution of the privacy loss of several reports about one true value.

    Parameters
    ----------
    mechanism : any, or what `changing` returns.
    reports : n, in [1, `most_reports`].
    memoized : True if the reports share one permanent response; see `costs`.

    Returns
    -------
    PrivacyLoss of all reports together.

    Source: see the function for each mechanism, in `privacy_loss`, `memoized_krr`, `memoized_rappor` and
    `changing_buckets`.
    """
    mechanism = _accounted(mechanism, memoized)
    match mechanism:
        case KRR():
            return krr_loss(mechanism).times(1 if memoized else reports)
        case PairKRR():
            return pair_loss(mechanism).times(1 if memoized else reports)
        case SquareWave():
            return square_wave_loss(mechanism).times(1 if memoized else reports)
        case ChangingBuckets() if memoized:
            return mechanism.loss(reports)
        case ChangingBuckets(steps):
            return loss_of_reports(steps, reports, memoized)
        case ChangingResponses(one):
            return loss_of_reports(one, reports, memoized=False)
        case LongitudinalKRR() if memoized:
            return shared_krr_loss(mechanism, reports)
        case LongitudinalKRR():
            return longitudinal_loss(mechanism).times(reports)
        case Rappor() | HotRappor() if memoized:
            return shared_bits_loss(mechanism, reports)
        case Rappor() | HotRappor():
            return bits_loss(mechanism).times(reports)
        case _:
            return PrivacyLoss.of_reports(mechanism.report_atoms()).times(1 if memoized else reports)


def _accounted(mechanism: Subject, memoized: bool) -> Subject:
    """Return what of a report depends on the value: of hashing the bucket, not the function or the level."""
    match mechanism:
        case LongitudinalHash() if memoized:
            return hashed_subject(mechanism)
        case LocalHash() | PrefixTree() | LongitudinalHash():
            return mechanism.response
        case _:
            return mechanism


def is_endless(name: str, mechanism: Subject, budget: float, delta: float, memoized: bool) -> bool:
    """Return whether any number of reports is within the budget, by this bound; see `allowed_reports`."""
    cap = _caps(mechanism, delta, memoized)[name]
    if cap <= budget or not math.isfinite(cap):
        return cap <= budget
    if isinstance(_accounted(mechanism, memoized), ChangingBuckets):
        return False  # the cap is that of the permanent responses already
    return BOUNDS[name](_loss_of_permanent_response(mechanism), delta) <= budget


def _largest_of(mechanism: Subject, reports: int, memoized: bool) -> float:
    """Return a bound on the largest loss where the distribution of losses has a looser one; else inf."""
    subject = _accounted(mechanism, memoized)
    return subject.largest_of(reports) if memoized and isinstance(subject, ChangingBuckets) else math.inf


def _caps(mechanism: Subject, delta: float, memoized: bool) -> dict[str, float]:
    """Return what any number of reports costs at most, by bound: inf if they are not memoized."""
    if not memoized:
        return dict.fromkeys(BOUNDS, math.inf)
    cap = epsilon_inf(mechanism, memoized)
    subject = _accounted(mechanism, memoized)
    if not isinstance(subject, ChangingBuckets):  # the joint loss approaches it by itself
        return dict.fromkeys(BOUNDS, cap)
    if subject.buckets > LARGEST_MEMOIZED:
        return dict.fromkeys(BOUNDS, cap)  # more buckets than reports are accounted for
    permanent = subject.permanent_loss()
    return {name: min(bound(permanent, delta), cap) for name, bound in BOUNDS.items()}


def _loss_of_permanent_response(mechanism: Subject) -> PrivacyLoss:
    """Loss of the permanent response itself; not defined for flip_threshold = 0, where it is the truth."""
    mechanism = _accounted(mechanism, memoized=True)
    match mechanism:
        case LongitudinalKRR():
            return krr_loss(mechanism.permanent)
        case ChangingBuckets():
            return mechanism.permanent_loss()
        case ChangingResponses(one):
            return _loss_of_permanent_response(one)
        case Rappor() | HotRappor():
            flip = Fraction(mechanism.flip_threshold, WORDS)
            return PrivacyLoss.of_three_atoms((1 - flip) ** 2, flip**2, mechanism.ones)
        case _:
            return loss_of_reports(mechanism, 1, memoized=True)


def most_reports(mechanism: Subject, memoized: bool) -> int:
    """Return the largest number of reports that `costs` accepts.

    Parameters
    ----------
    mechanism : any, or what `changing` returns.
    memoized : True if the reports share one permanent response.

    Returns
    -------
    100,000, or 10,000 if memoized; for RAPPOR at most 1,000,000 / `ones`, to bound the time.
    """
    if isinstance(mechanism, ChangingResponses):
        return most_reports(mechanism.mechanism, memoized)
    most = LARGEST_MEMOIZED if memoized else LARGEST_REPORTS
    bits = None if isinstance(mechanism, ChangingBuckets) else bits_of(mechanism)
    return most if bits is None else min(most, LARGEST_OUTPUTS // bits.ones)


def _check(name: str, value: float, end: float) -> None:
    if not 0 < value < end:
        raise ValueError(f"{name} must be in (0, {end}), got {value}")
