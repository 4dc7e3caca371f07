"""The values that each field of the collection file allows, in words for messages."""

from collections.abc import Mapping
from typing import get_args

from deniable.config.checks import YEAR_SECONDS
from deniable.config.entries import CHANGE_ALARMS, LARGEST_SIZE, Entry
from deniable.config.settings.allowance import LARGEST_REPORTS_PER_WINDOW
from deniable.estimators.mechanisms.hashing.function_pool import LARGEST_BUCKETS, LARGEST_COUNTERS
from deniable.estimators.mechanisms.hashing.prefix_tree import LONGEST, MOST_LEVELS
from deniable.estimators.mechanisms.krr import LARGEST_EPSILON
from deniable.estimators.mechanisms.rappor import LARGEST_BITS, LARGEST_COHORTS
from deniable.estimators.mechanisms.square_wave import LARGEST_STEPS, LEAST_STEPS

#: The class of an entry by mechanism.
MECHANISMS = {entry.__struct_config__.tag: entry for entry in get_args(Entry)}

_EPSILON = f"a number in (0, {LARGEST_EPSILON}]"
_FIELDS: Mapping[str, str] = {
    "collections": "a list of at least one collection",
    "revision": "an integer of at least 1",
    "name": "1 to 63 lower-case letters, digits, _ and -, beginning with a letter",
    "mechanism": f"one of {', '.join(map(str, MECHANISMS))}",
    "window_seconds": f"an integer in [1, {YEAR_SECONDS}]",
    "grace_seconds": f"an integer in [0, {YEAR_SECONDS}]",
    "retention_seconds": f"an integer in [60, {10 * YEAR_SECONDS}]",
    "minimum_reports": f"an integer in [1, {10**12}]",
    "window_packs": f"an integer in [1, {10**8}]",
    "publish": "top or all",
    "change_alarms_a_year": f"a number in [{CHANGE_ALARMS[0]}, {CHANGE_ALARMS[1]}]",
    "reports_per_window": f"an integer in [1, {LARGEST_REPORTS_PER_WINDOW}]",
    "budget": "none, or a mapping",
    "values": "a list of text",
    "fields": "a list of two fields, each with name and values",
    "size": f"an integer in [1, {LARGEST_SIZE}]",
    "epsilon": _EPSILON,
    "epsilon_inf": _EPSILON,
    "epsilon_one": "a number in (0, epsilon_inf)",
    "f": "a number in [0, 1)",
    "p": "a number in (0, q)",
    "q": "a number in (0, 1)",
    "bits": f"a multiple of 8 in [8, {LARGEST_BITS}]",
    "hashes": "an integer of at least 1",
    "cohorts": f"an integer in [1, {LARGEST_COHORTS}]",
    "hash_functions": f"an integer in [1, {LARGEST_COUNTERS // 2}]",
    "hash_buckets": f"a prime in [2, {LARGEST_BUCKETS}]",
    "candidates": "a list of text",
    "lengths": f"a list of 2 to {MOST_LEVELS} ascending integers in [1, {LONGEST}]",
    "alphabet": "the characters of texts, as one text",
    "grow": "a mapping with windows, and if need be rate",
    "windows": "an integer from 1 to 67108864 divided by the counters of a window",
    "rate": "a number in (0, 1)",
    "hot": "an integer in [1, number of values]",
    "minimum": "a number below maximum",
    "maximum": "a number above minimum",
    "steps": f"an integer in [{LEAST_STEPS}, {LARGEST_STEPS}]",
    "topic_prefix": "at most 100 letters, digits, dots, _ and -",
    "partitions": "an integer in [1, 1000]",
    "replication_factor": "an integer in [1, 100]",
    "checkpoint_seconds": "a number in [0.05, 5]",
    "pack_reports": "an integer in [1, 1000000]",
    "pack_seconds": "a number in [0.001, 3600]",
    "outbox_bytes": f"an integer in [{2**20}, {2**40}]",
    "block_milliseconds": "an integer in [0, 3600000]",
    "batch_reports": "an integer in [1, 10000000]",
    "shuffle_reports": "an integer in [0, 1000000]",
    "window_uploads": "an integer in [1, 1000000000]",
    "idle_seconds": "a number in [0.01, 3600]",
    "delivery_seconds": "an integer in [1, 86400]",
    "wait_seconds": "an integer in [0, 86400]",
    "forged_share": "a number in [0, 1]",
    "deliver": "kafka, or the URL of an edge such as https://edge.example; http only to this machine",
    "edge_public_key": "base64 of 32 bytes: public_key of the edge's /v1/collections",
    "allow_origins": "a list of origins such as https://shop.example, or of '*' alone",
    "uploads_per_minute": f"an integer in [0, {10**9}]",
    "trusted_proxies": "an integer in [0, 100]",
    "max_age_seconds": "an integer in [0, 86400]",
    "url": "postgresql://USER@HOST:PORT/DATABASE, without a password",
    "when_away": "wait or drop",
}
_BUDGET_FIELDS: Mapping[str, str] = {
    "epsilon": "a number in (0, inf)",
    "delta": "a number in (0, 1)",
    "period_seconds": f"an integer in [1, {2**32})",
    "values": "unchanged or any",
    "changes": "an integer of at least 0",
}


def allowed(field: str | int, in_budget: bool) -> str | None:
    """Return the allowed values of a field in words; None if its type says it all.

    Parameters
    ----------
    field : its name; an index for an element of a list.
    in_budget : whether it is a field of `budget`.
    """
    return (_BUDGET_FIELDS if in_budget else _FIELDS).get(str(field))
