"""Joint privacy loss of longitudinal k-RR reports that share one permanent response."""

import math
from collections.abc import Iterable, Iterator
from decimal import Context, Decimal, localcontext
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.accounting.discretization import RAREST, joint_loss, spread
from deniable.estimators.accounting.privacy_loss import PrivacyLoss
from deniable.estimators.arrays import FloatArray
from deniable.estimators.mechanisms.directed_rounding import UNIT
from deniable.estimators.mechanisms.krr import KRR, WORDS, commonest, rarest
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR

# Lattice steps from loss 0 to the largest loss of all reports together.
STEPS = 1 << 14
MOST_ENUMERATED = 30
BATCH = 1 << 15


def shared_krr_loss(mechanism: LongitudinalKRR, reports: int) -> PrivacyLoss:
    """Return the joint loss of several reports from one permanent response.

    Let c_b of n reports show value b, and r = p2 / q2. Given the true value v, the reports have probability

        q2^n (p1 r^c_v + q1 (r^c_w + S)),  S = sum of r^c_b over all values b other than v and w,

    and given w the same with v and w exchanged, so (c_v, c_w, S) is sufficient. Up to 30 reports, S runs over
    all ways to distribute n - c_v - c_w reports over k - 2 values. Above that, S is replaced by its two
    extremes, weighted to preserve its mean. Both probabilities are linear in S, so S is a post-processing of
    that extreme output, and every figure is an upper bound, in tests by less than 3 % of epsilon.

    Losses are discretized to 2^14 steps (see `spread`), which raises epsilon by less than 2^-14 of the
    largest loss. Losses and masses are raised by their rounding, and by the error of taking all other values
    as equally likely (multiply-shift makes some rarer): by less than 1e-9 if n k <= 10^9.

    Parameters
    ----------
    mechanism : LongitudinalKRR.
    reports : n, >= 1.

    Returns
    -------
    PrivacyLoss of all reports together, at most that of the permanent response.

    Source: Erlingsson, Pihur, Korolova, "RAPPOR" (CCS 2014), theorem 1, for the limit of many reports.
    """
    first, all_alike = mechanism.permanent, reports * _log_odds(mechanism.instantaneous)
    below = first.q + (1 - first.q) * math.exp(-all_alike)
    excess = first.contrast * -math.expm1(-all_alike) / below
    largest = float(_raised(np.array([math.log1p(excess)]), mechanism, reports)[0])
    mass = np.zeros(2 * STEPS + 1)
    for losses, chances in _batches(_atoms(mechanism, reports)):
        mass = (mass + spread(losses, chances, -largest, largest, 2 * STEPS)) * (1 + 4 * UNIT)
    return joint_loss(mass, largest, mechanism.epsilon_inf)


def _atoms(mechanism: LongitudinalKRR, reports: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield losses of all (c_v, c_w, S) not rarer than RAREST, and their probabilities given v.

    Both are upper bounds: losses are raised by `_raised`, and log-masses by the rounding of their terms,
    whose absolute values sum to at most `magnitude`.
    """
    k, first, second = mechanism.k, mechanism.permanent, mechanism.instantaneous
    log_p, log_q, log_r = math.log(first.p), math.log(first.q), _log_odds(second)
    factorials = np.array([math.lgamma(count + 1) for count in range(reports + 1)])
    each = log_r + math.log(k) - math.log(second.q)
    magnitude = 2 - log_p - log_q + reports * each + math.log(k) + 4 * factorials[-1]
    raised = 64 * UNIT * magnitude + _unequal(k, reports)
    for others in _likely_counts(1 - second.p - second.q, 1 - 2 * second.q, factorials) if k > 2 else [0]:
        log_sums, log_ways = _sums(k - 2, second, others, reports <= MOST_ENUMERATED)
        c_v = _likely_share(reports - others, second.q / (second.p + second.q))
        c_w = c_v[::-1]
        likelihood = np.logaddexp(log_p + log_r * c_v, log_q + np.logaddexp(log_r * c_w, log_sums))
        log_ways = log_ways + factorials[-1] - factorials[others] - factorials[c_v] - factorials[c_w]
        log_mass = likelihood + log_ways + reports * math.log(second.q) + raised
        kept = log_mass > math.log(RAREST)
        losses = _raised(_losses(first, log_r, c_v, log_sums), mechanism, reports)
        yield losses[kept], np.exp(log_mass[kept])


def _losses(first: KRR, log_r: float, c_v: NDArray[np.int64], log_sums: FloatArray) -> FloatArray:
    """ln((p1 r^c_v + q1 (r^c_w + S)) / (p1 r^c_w + q1 (r^c_v + S))), where c_w is c_v reversed.

    For c_v >= c_w it is computed without cancellation as
    ln(1 + (p1 - q1) (1 - d) / (q1 + p1 d + q1 S r^-c_v)), d = r^(c_w - c_v). Swapping c_v and c_w negates it.
    """
    ahead = c_v - c_v[::-1]
    behind = np.exp(-log_r * np.abs(ahead))
    others = np.exp(np.minimum(log_sums - log_r * np.maximum(c_v, c_v[::-1]), 700))  # e^700 is a float
    below = first.q + first.p * behind + first.q * others
    excess = first.contrast * -np.expm1(-log_r * np.abs(ahead)) / below
    losses: FloatArray = np.copysign(np.log1p(excess), ahead)
    return losses


def _raised(losses: FloatArray, mechanism: LongitudinalKRR, reports: int) -> FloatArray:
    """Raise losses by a bound on their rounding, given exponents of up to n ln r + ln k."""
    exponents = reports * _log_odds(mechanism.instantaneous) + math.log(mechanism.k)
    rounding = 64 * UNIT * (2 + exponents)
    return losses + rounding * np.abs(losses) + 2 * _unequal(mechanism.k, reports)


def _unequal(k: int, reports: int) -> float:
    """Bound the error of ln P(y) from taking all other values as equally likely, over n + 1 k-RR steps."""
    off = max(commonest(k) * (k - 1) - WORDS, WORDS - rarest(k) * (k - 1))
    return 1.01 * (reports + 1) * off / WORDS


def _log_odds(mechanism: KRR) -> float:
    """ln(p / q), accurate even where p is close to q."""
    return math.log1p(mechanism.contrast / mechanism.q)


def _batches(atoms: Iterable[tuple[FloatArray, FloatArray]]) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Concatenate atoms into arrays of BATCH or more, because each `spread` takes O(STEPS) time."""
    held: list[tuple[FloatArray, FloatArray]] = []
    for few in atoms:
        held.append(few)
        if sum(len(losses) for losses, _ in held) >= BATCH:
            yield _joined(held)
            held = []
    if held:
        yield _joined(held)


def _joined(parts: list[tuple[FloatArray, FloatArray]]) -> tuple[FloatArray, FloatArray]:
    losses, chances = zip(*parts, strict=True)
    return np.concatenate(losses), np.concatenate(chances)


def _likely_counts(rate: float, other_rate: float, factorials: FloatArray) -> list[int]:
    """Return the numbers of successes in n trials whose binomial probability, at either rate, is >= RAREST.

    Parameters
    ----------
    rate, other_rate : success probabilities, in (0, 1).
    factorials : ln 0! to ln n!, float64 (n + 1,).
    """
    successes = np.arange(len(factorials))
    chances = [
        successes * math.log(chance) + successes[::-1] * math.log1p(-chance) for chance in (rate, other_rate)
    ]
    log_mass = np.maximum(*chances) + factorials[-1] - factorials - factorials[::-1]
    return [int(count) for count in np.flatnonzero(log_mass > math.log(RAREST))]


def _likely_share(reports: int, least_rate: float) -> NDArray[np.int64]:
    """Return the numbers of successes not surely rarer than RAREST, at any rate in [least, 1 - least].

    By Hoeffding's inequality, P(c <= n rate - x) <= exp(-2 x² / n).
    """
    first = math.floor(reports * least_rate - math.sqrt(-reports * math.log(RAREST) / 2))
    return np.arange(max(0, first), reports - max(0, first) + 1)


def _sums(cells: int, second: KRR, reports: int, enumerate_all: bool) -> tuple[FloatArray, FloatArray]:
    """Return ln S, S = sum of r^count, for each way to share reports among cells, and ln of its weight.

    Returns
    -------
    Two float64 arrays (m, 1).
    """
    if cells == 0:
        return np.full((1, 1), -np.inf), np.zeros((1, 1))
    if enumerate_all:
        to_sum = partial(_sum_and_ways, cells=cells, log_r=_log_odds(second))
        found = [to_sum(parts) for parts in _partitions(reports, cells, reports)]
    else:
        found = _two_extremes(cells, second, reports)
    log_sums, log_ways = np.array(found).T[:, :, np.newaxis]
    return log_sums, log_ways


def _sum_and_ways(parts: tuple[int, ...], cells: int, log_r: float) -> tuple[float, float]:
    """Return ln S of one partition, and ln of the number of report sequences that have it."""
    empty = cells - len(parts)
    places = math.perm(cells, len(parts))
    for part in set(parts):
        places //= math.factorial(parts.count(part))
    orders = math.factorial(sum(parts)) // math.prod(map(math.factorial, parts))
    return math.log(empty + sum(math.exp(log_r * part) for part in parts)), math.log(places * orders)


def _two_extremes(cells: int, second: KRR, reports: int) -> list[tuple[float, float]]:
    """Return ln S and ln of its weight for the least S (equal counts) and the largest (one cell), same E[S].

    A count is Bin(reports, 1 / cells), so E[r^count] = (1 + (r - 1) / cells)^reports. Computed with 80
    digits, because r may be close to 1, where the extremes differ by only (r - 1)^2.
    """
    each, more = divmod(reports, cells)
    log_ways = reports * math.log(cells)
    with localcontext(Context(prec=80)):
        lies = Decimal(WORDS - second.threshold)
        r = second.threshold * (second.k - 1) / lies
        least = r**each * (cells + more * (r - 1))
        if cells == 1 or reports <= 1:
            return [(_log(least), log_ways)]
        most = r**reports + cells - 1
        mean = cells * (1 + (r - 1) / cells) ** reports
        above, below = (mean - least) / (most - least), (most - mean) / (most - least)
        return [(_log(least), log_ways + _log(below)), (_log(most), log_ways + _log(above))]


def _log(number: Decimal) -> float:
    """Logarithm of a number that may overflow or underflow a float."""
    exponent = number.adjusted()
    return math.log(float(number.scaleb(-exponent))) + exponent * math.log(10)


def _partitions(total: int, most_parts: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield all partitions of the total into at most `most_parts` parts of at most `largest`, descending."""
    if total == 0:
        yield ()
        return
    for part in range(min(total, largest), 0, -1):
        if part * most_parts < total:
            return
        for rest in _partitions(total - part, most_parts - 1, part):
            yield (part, *rest)
