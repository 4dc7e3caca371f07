"""A collection in words: what it asks, and what an answer costs."""

import math
from decimal import ROUND_CEILING, Context

from estimators.collection import Collection
from estimators.longitudinal import LongitudinalKRR
from estimators.rappor import Rappor
from estimators.rappor_hot import HotRappor


def describe(collection: Collection) -> str:
    """One paragraph: name, mechanism, windows, and epsilon as odds."""
    mechanism = collection.mechanism
    factor = math.exp(mechanism.epsilon)
    lines = [
        f"{collection.name}: {_mechanism(collection)}, windows of {collection.window_seconds} s"
        f" + {collection.grace_seconds} s grace, fingerprint {collection.fingerprint:016x}",
        f"  one report: epsilon {rounded_up(mechanism.epsilon)}, it cannot change anyone's odds by more than"
        f" a factor {rounded_up(factor)}",
    ]
    if collection.memoize:
        lines.append(
            f"  all reports of one client and unchanged value: epsilon {rounded_up(collection.epsilon_inf)}; "
            "that a value changed is not hidden"
        )
    else:
        lines.append("  every further report of one client costs as much again: no budget is enforced")
    return "\n".join(lines)


def rounded_up(figure: float) -> str:
    """Four digits, never below the figure: a privacy loss is not stated below the truth."""
    return f"{Context(prec=4, rounding=ROUND_CEILING).create_decimal_from_float(figure):f}"


def _mechanism(collection: Collection) -> str:
    mechanism = collection.mechanism
    if isinstance(mechanism, Rappor):
        return (
            f"RAPPOR, {mechanism.bits} bits, {mechanism.hashes} hashes, {mechanism.cohorts} cohorts, "
            f"{len(collection.candidates)} candidates"
        )
    last = ", the last one for all other values" if collection.other else ""
    if isinstance(mechanism, HotRappor):
        return f"RAPPOR over {mechanism.buckets} buckets, {mechanism.hot} in an answer{last}"
    kind = "longitudinal k-RR" if isinstance(mechanism, LongitudinalKRR) else "k-RR"
    return f"{kind} over {mechanism.k} buckets{last}"
