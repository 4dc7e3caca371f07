"""Rényi divergence and tight zCDP of a privacy loss distribution, and their conversion to (epsilon, delta).

Source: Mironov, "Rényi differential privacy" (CSF 2017); Bun, Steinke, "Concentrated differential privacy"
(TCC 2016).
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from deniable.estimators.accounting.privacy_loss import PrivacyLoss
from deniable.estimators.mechanisms.directed_rounding import UNIT

# Relative gap between the best value that `zcdp_rho` finds and the upper bound that it returns.
RHO_GAP = 1e-12
GOLDEN = (math.sqrt(5) - 1) / 2


def renyi_divergence(loss: PrivacyLoss, order: float) -> float:
    """D_alpha(P || Q) = ln E[exp((alpha - 1) L)] / (alpha - 1): the tight RDP curve at one order.

    Rounded up, by a relative 1e-13 for three atoms and 1e-11 for any loss here.

    Parameters
    ----------
    loss : PrivacyLoss, all copies together.
    order : alpha, >= 1; at 1 the Kullback-Leibler divergence, its limit.

    Returns
    -------
    Nats.

    Raises
    ------
    ValueError if the order is out of range.

    Source: Mironov, "Rényi differential privacy" (CSF 2017), definition 3; k-RAPPOR: "Tight RDP and zCDP
    bounds for RAPPOR", theorem 6.
    """
    if not order >= 1:
        raise ValueError(f"order must be >= 1, got {order}")
    return _divergence(loss, order - 1)


def zcdp_rho(loss: PrivacyLoss) -> float:
    """Tight zCDP parameter: sup of D_alpha / alpha over alpha > 1, rounded up by at most a relative 1e-12.

    The supremum need not be at alpha -> 1, and D_alpha / alpha may have several maxima, so branch and bound
    over t = alpha - 1 encloses it. With u = t (1 + t) and K = t D_alpha = ln E[exp(t L)], it is the supremum
    of K / u. Since D_alpha <= D_infinity, no t > D_infinity / D_1 - 1 gives more than t -> 0. The interval
    with the highest `_quotient_bound` is halved until that bound exceeds the best value by at most the gap.

    Parameters
    ----------
    loss : PrivacyLoss, invariant under swapping P and Q.

    Returns
    -------
    rho of all copies together, nats, > 0.

    Source: Bun, Steinke, "Concentrated differential privacy" (TCC 2016), definition 1.1.
    """
    one = replace(loss, copies=1)
    best = _divergence(one, 0)
    last = one.largest / best - 1
    pending = [(-math.inf, 0.0, 0.0, last, last * _divergence(one, last))]
    while pending and -pending[0][0] > best * (1 + RHO_GAP):
        _, low, at_low, high, at_high = heapq.heappop(pending)
        middle = (low + high) / 2
        at_middle = middle * _divergence(one, middle)
        best = max(best, at_middle / (middle * (1 + middle)))
        for half in ((low, at_low, middle, at_middle), (middle, at_middle, high, at_high)):
            heapq.heappush(pending, (-_quotient_bound(*half), *half))
    return loss.copies * best * (1 + RHO_GAP + 32 * UNIT)


def epsilon_from_rho(rho: float, delta: float) -> float:
    """Convert zCDP to (epsilon, delta): rho + 2 sqrt(rho ln(1 / delta)).

    Parameters
    ----------
    rho : of all reports together, nats, > 0.
    delta : in (0, 1).

    Returns
    -------
    epsilon, nats, rounded up.

    Source: Bun, Steinke, "Concentrated differential privacy" (TCC 2016), proposition 1.3.
    """
    return (rho + 2 * math.sqrt(-rho * math.log(delta))) * (1 + 32 * UNIT)


def epsilon_from_renyi(loss: PrivacyLoss, delta: float) -> float:
    """Convert the whole RDP curve to (epsilon, delta), at the order that minimizes epsilon.

    epsilon = D_alpha + (ln(1 / delta) - ln(alpha)) / (alpha - 1) + ln(1 - 1 / alpha), or the largest loss
    (the limit alpha -> infinity). With t = alpha - 1 this is a convex function of t divided by t, so it is
    quasi-convex. Golden-section search finds its minimum, and every t gives a valid epsilon. The optimal
    conversion (Asoodeh et al., 2021, theorem 3) would need a nested search, and is lower by a relative 1e-8
    at ten reports and delta <= 1e-3.

    Parameters
    ----------
    loss : PrivacyLoss, all copies together.
    delta : in (0, 1).

    Returns
    -------
    epsilon, nats, in [0, largest loss], rounded up.

    Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (NeurIPS 2020),
    proposition 12.
    """

    def converted(log_t: float) -> float:
        t = math.exp(log_t)
        divergence = _divergence(loss, t)
        of_delta, of_order, of_both = -math.log(delta) / t, math.log1p(t) / t, math.log1p(1 / t)
        rounding = 16 * UNIT * (divergence + of_delta + of_order + of_both)
        return divergence + of_delta - of_order - of_both + rounding

    return min(max(_golden_minimum(converted, -30.0, 30.0), 0.0), loss.largest)


def _divergence(loss: PrivacyLoss, t: float) -> float:
    """Upper bound on D_(1+t) of all copies, t >= 0, without cancellation however small the losses.

    The loss is invariant under swapping P and Q, so P(-L) = P(L) exp(-L), and
    E[exp(t L)] = 1 + sum over L > 0 of P(L) (exp(t L) - 1) (1 - exp(-(t + 1) L)).
    It is non-decreasing in masses and losses. Lattice losses have a relative error of 2 units, a sum of m
    terms m units plus those of its terms, and a relative error of x is multiplied by x in exp(x).
    """
    losses = loss.losses[1 - loss.first :] * (1 + 4 * UNIT)
    mass = loss.mass[1 - loss.first :]
    units = len(losses) + 32
    if t == 0:
        return -loss.copies * float(mass @ (losses * np.expm1(-losses))) * (1 + units * UNIT)
    largest = t * float(losses[-1])
    if largest < 500:  # e^500 is a float
        excess = -float(mass @ (np.expm1(t * losses) * np.expm1(-(t + 1) * losses)))
        moment = math.log1p(excess * (1 + (units + 2 * largest) * UNIT))
    else:  # the 1, and more, is exp(-largest) here
        log_sum = math.log(float(mass @ np.exp(t * losses - largest)) + math.exp(-largest))
        moment = largest + log_sum + (units + 8 * (largest - log_sum)) * UNIT
    return loss.copies * moment / t * (1 + 16 * UNIT)


def _quotient_bound(low: float, at_low: float, high: float, at_high: float) -> float:
    """Upper bound on K / u, u = t (1 + t), for t in [low, high], from K at both ends.

    First bound: K / u = D_alpha / alpha, and D_alpha is non-decreasing. Second bound: by the symmetry of P
    and Q, exp(K) = E[exp(-L/2) cosh((t + 1/2) L)], and (t + 1/2)^2 = u + 1/4. So exp(K) is a power series in
    u + 1/4 with coefficients >= 0, and convex in u. Since K <= K_low + exp(K - K_low) - 1, K is below the
    line from (u_low, K_low) to (u_high, K_low + exp(K_high - K_low) - 1), and a line divided by u is largest
    at an end. The error of the second bound is quadratic in the length of the interval.
    """
    bound = at_high / (high * (1 + low))
    if at_high - at_low < 1:
        line = (at_low + math.expm1(at_high - at_low)) / (high * (1 + high))
        bound = min(bound, max(line, at_low / (low * (1 + low)) if low else line))
    return bound


def _golden_minimum(function: Callable[[float], float], low: float, high: float) -> float:
    """Smallest value that golden-section search finds of a quasi-convex function on [low, high]."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    least = min(at_left, at_right)
    while high - low > 1e-9:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = function(right)
        least = min(least, at_left, at_right)
    return least
