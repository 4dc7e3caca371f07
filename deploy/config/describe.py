"""A collection in words: what it asks, what a report costs, and how many a client may send."""

import math
from decimal import ROUND_CEILING, Context

from estimators.collection import Collection
from estimators.mechanisms.hashing.function_pool import FunctionPool
from estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from estimators.mechanisms.hashing.prefix_tree import PrefixTree
from estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from estimators.mechanisms.matrix.pair import PairKRR
from estimators.mechanisms.rappor import Rappor
from estimators.mechanisms.rappor_hot import HotRappor
from estimators.mechanisms.square_wave import SquareWave
from producers.budget.allowance import UNLIMITED, Allowance, Budget


def describe(allowance: Allowance) -> str:
    """Return one paragraph: name, mechanism, windows, epsilon, a client's limits; last, what few need."""
    collection = allowance.collection
    epsilon = collection.mechanism.epsilon
    lines = [
        f"{collection.name}: {_mechanism(collection)}, windows of {collection.window_seconds} s"
        f" + {collection.grace_seconds} s grace",
        f"one report: epsilon {rounded_up(epsilon)}",
        _further_reports(allowance),
        *_limits(allowance),
        f"a report cannot change anyone's odds by more than a factor {rounded_up(math.exp(epsilon))}; "
        f"fingerprint {collection.fingerprint:016x}",
    ]
    return "\n  ".join(lines)


def rounded_up(figure: float) -> str:
    """Round up to four digits: a privacy loss is never stated below its true value."""
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(figure):f}"


def _further_reports(allowance: Allowance) -> str:
    unchanged = rounded_up(allowance.epsilon_unchanged)
    mechanism = allowance.collection.mechanism
    if isinstance(mechanism, LongitudinalHash):
        return (
            f"all reports of one client and unchanged value: epsilon {unchanged}; of values in all "
            f"{mechanism.hash_buckets} buckets: {rounded_up(mechanism.epsilon_of_all_buckets)}, but that a "
            "value changed is not hidden"
        )
    if allowance.memoized:
        return (
            f"all reports of one client and unchanged value: epsilon {unchanged}; "
            "that a value changed is not hidden"
        )
    return "every further report of one client costs as much again"


def _limits(allowance: Allowance) -> list[str]:
    """Return the limits that producers enforce for each client, if the application names clients."""
    of_windows = f"{_reports(allowance.reports_per_window)} per window"
    budget = allowance.budget
    if budget is None:
        return [f"a client may send {of_windows}, without a limit over time: no budget is enforced"]
    limit = allowance.unspent_limit
    of_periods = "any number" if limit == UNLIMITED else _reports(limit)
    lines = [f"a client may send {of_windows}, {of_periods} per period of {_budget(budget)}"]
    if limit == 0:
        lines.append("warning: one report costs more than the budget, so every report of a client is refused")
    return lines


def _reports(number: int) -> str:
    return f"{number} report{'' if number == 1 else 's'}"


def _budget(budget: Budget) -> str:
    covered = "" if budget.changes is None else f", {budget.changes} changes of bucket"
    return f"{budget.period_seconds} s (budget: epsilon {budget.epsilon:g}, delta {budget.delta:g}{covered})"


def _mechanism(collection: Collection) -> str:
    mechanism = collection.mechanism
    if isinstance(mechanism, Rappor):
        return (
            f"RAPPOR, {mechanism.bits} bits, {mechanism.hashes} hashes, {mechanism.cohorts} cohorts, "
            f"{len(collection.candidates)} candidates"
        )
    if isinstance(mechanism, SquareWave):
        ends = f"[{mechanism.minimum:.10g}, {mechanism.maximum:.10g}]"
        return f"Square Wave over numbers in {ends} in {mechanism.steps} steps"
    if isinstance(mechanism, PairKRR):
        return "k-RR of pairs, " + " and ".join(
            f"{field.name} over {own.k} buckets with epsilon {rounded_up(own.epsilon)}"
            for field, own in zip(collection.fields, mechanism.fields, strict=True)
        )
    if isinstance(mechanism, OneHotPair):
        names = " and ".join(
            f"{field.name} over {k} buckets"
            for field, k in zip(collection.fields, mechanism.shape, strict=True)
        )
        return f"one bit for each of {mechanism.buckets} pairs, {names}"
    if isinstance(mechanism, PrefixTree):
        oracle, lengths = mechanism.oracle, " ".join(map(str, mechanism.lengths))
        return (
            f"a prefix tree with levels of {lengths} bytes, {oracle.hash_functions} functions into "
            f"{oracle.hash_buckets} buckets on each, {len(collection.candidates)} candidates"
        )
    if isinstance(mechanism, FunctionPool):
        kind = "longitudinal local hashing" if isinstance(mechanism, LongitudinalHash) else "local hashing"
        return (
            f"{kind}, {mechanism.hash_functions} functions into {mechanism.hash_buckets} buckets, "
            f"{len(collection.candidates)} candidates"
        )
    last = ", the last one for all other values" if collection.other else ""
    if isinstance(mechanism, HotRappor):
        return f"RAPPOR over {mechanism.buckets} buckets, {mechanism.hot} in an answer{last}"
    kind = "longitudinal k-RR" if isinstance(mechanism, LongitudinalKRR) else "k-RR"
    return f"{kind} over {mechanism.k} buckets{last}"
