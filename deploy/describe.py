"""A collection in words: what it asks, and what an answer costs."""

import math

from estimators.collection import Collection
from estimators.rappor import Rappor


def describe(collection: Collection) -> str:
    """One paragraph: name, mechanism, windows, and epsilon as odds."""
    mechanism = collection.mechanism
    factor = math.exp(mechanism.epsilon)
    lines = [
        f"{collection.name}: {_mechanism(collection)}, windows of {collection.window_seconds} s"
        f" + {collection.grace_seconds} s grace, fingerprint {collection.fingerprint:016x}",
        f"  one report: epsilon {mechanism.epsilon:.4g}, it cannot change anyone's odds by more than"
        f" a factor {factor:.3g}",
    ]
    if isinstance(mechanism, Rappor) and collection.memoize:
        lines.append(
            f"  all reports of one client and unchanged value: epsilon {mechanism.epsilon_inf:.4g}; "
            "that a value changed is not hidden"
        )
    else:
        lines.append("  every further report of one client costs as much again: no budget is enforced")
    return "\n".join(lines)


def _mechanism(collection: Collection) -> str:
    mechanism = collection.mechanism
    if isinstance(mechanism, Rappor):
        return (
            f"RAPPOR, {mechanism.bits} bits, {mechanism.hashes} hashes, {mechanism.cohorts} cohorts, "
            f"{len(collection.candidates)} candidates"
        )
    return f"k-RR over {mechanism.k} buckets" + (
        ", the last one for all other values" if collection.other else ""
    )
