"""The memory that a collection takes in a worker, and for a search of its frequent texts."""

import msgspec

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.mechanism import pool_of, tree_of

COUNTER_BYTES = 8
#: Counts that are kept for growing take as few bytes a counter as they need: 4 hold four billion reports.
GROWING_BYTES = (1, 4)
#: Largest memory of a search measured with 5 levels of 65,536 counters (`bench/results/strings.md`).
SEARCH_BYTES = 145 << 20


class MemoryFacts(msgspec.Struct, frozen=True):
    """Bytes that a collection takes, by its parameters; without ids of packs, rows and estimates.

    Parameters
    ----------
    counters : of one window.
    stored_windows : at a time: those that are open, in grace, or retained.
    stored_bytes : of their counters, for each partition that a worker owns; and as much again for each
        partition of the topic, in the worker that estimates the collection.
    growing_windows : whose counts are kept for growing; None for no growing.
    growing_bytes : least and most of these counts, all windows together; None for no growing.
    search_bytes : about as much as a search of frequent texts takes, while it runs: in the worker where the
        collection grows, else in `decode --grow`. None but for a prefix tree.
    """

    counters: int
    stored_windows: int
    stored_bytes: int
    growing_windows: int | None
    growing_bytes: tuple[int, int] | None
    search_bytes: int | None


def memory_facts(collection: Collection) -> MemoryFacts:
    """Return what a collection takes."""
    counters, seconds = collection.cohorts * collection.width, collection.window_seconds
    windows = -(-(seconds + collection.grace_seconds + collection.retention_seconds) // seconds)
    growth = collection.growth
    least, most = (counters * growth.windows * size if growth else 0 for size in GROWING_BYTES)
    return MemoryFacts(
        counters=counters,
        stored_windows=windows,
        stored_bytes=counters * COUNTER_BYTES * windows,
        growing_windows=growth.windows if growth else None,
        growing_bytes=(least, most) if growth else None,
        search_bytes=SEARCH_BYTES if tree_of(collection.mechanism) else None,
    )


def memory_lines(collection: Collection) -> list[str]:
    """Say what a collection takes; nothing of mechanisms that have few counters."""
    if pool_of(collection.mechanism) is None:
        return []
    facts = memory_facts(collection)
    lines = [
        f"memory of a worker: {facts.counters:,} counters a window, {facts.stored_windows:,} windows at a "
        f"time: {_size(facts.stored_bytes)} for each partition that it owns, and as much for each of all "
        "partitions where it estimates the collection"
    ]
    if facts.search_bytes is None:
        return lines
    search = f"a search takes about {_size(facts.search_bytes)} while it runs"
    if facts.growing_bytes is None:
        return [*lines, f"deniable decode --grow: {search}"]
    least, most = map(_size, facts.growing_bytes)
    return [*lines, f"growing keeps {facts.growing_windows} windows, {least} to {most}; {search}"]


def _size(number: int) -> str:
    return f"{number / (1 << 20):,.3g} MiB" if number < 1000 << 20 else f"{number / (1 << 20):,.0f} MiB"
