"""Which windows and packs look forged: the detectors' p-values, and which are alarms. Pure.

Rule: the p-values of one detector are multiplied by their number (Bonferroni). So for honest reports of any
values, one detector alarms in one run with probability at most `rate`.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np

from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.detectors.forgery import (
    change_p_value,
    change_p_values,
    cohort_p_value,
    impossible_p_values,
    popcount_p_value,
)
from deniable.estimators.mechanisms.hashing.function_block import block_of
from deniable.estimators.mechanisms.hashing.function_pool import FunctionPool
from deniable.estimators.mechanisms.mechanism import bits_of, bloom_of, pool_of
from deniable.protocol import wire


class ScoredWindow(NamedTuple):
    """One window or pack: where it is, and its p-value."""

    place: dict[str, int | str]
    p_value: float


class DetectorFinding(msgspec.Struct, frozen=True):
    """Result of one detector over all windows or packs.

    Parameters
    ----------
    detector : cohorts, functions, impossible, change or popcounts.
    judged : number of windows or packs.
    p_value : the smallest p-value times `judged`, in [0, 1]; 1 if there is none.
    alarms : places with a p-value of at most rate / judged, with p-value times `judged`.
    """

    detector: str
    judged: int
    p_value: float
    alarms: list[dict[str, int | str | float]]


def finding(detector: str, judged: Sequence[ScoredWindow], rate: float) -> DetectorFinding:
    """Summarize one detector; `rate` is its false-alarm rate per run, in (0, 1)."""
    together = [(each.place, min(1.0, each.p_value * len(judged))) for each in judged]
    alarms: list[dict[str, int | str | float]] = [
        {**place, "p_value": p_value} for place, p_value in together if p_value <= rate
    ]
    smallest = min((p_value for _, p_value in together), default=1.0)
    return DetectorFinding(detector, len(judged), smallest, alarms)


def judge_windows(
    collection: Collection, windows: Mapping[int, WindowCounts], rate: float
) -> Iterator[DetectorFinding]:
    """Findings of each window detector that applies to this collection.

    Parameters
    ----------
    collection : of the windows.
    windows : counts by start, ascending; those with fewer than minimum_reports are skipped.
    rate : see `finding`.
    """
    enough = {start: each for start, each in windows.items() if each.reports >= collection.minimum_reports}
    if collection.cohorts > 1:
        cohorts = [
            ScoredWindow({"window_start": s}, cohort_p_value(w.cohort_sizes)) for s, w in enough.items()
        ]
        yield finding("cohorts", cohorts, rate)
    if (pool := pool_of(collection.mechanism)) is not None:
        yield finding(
            "functions",
            [ScoredWindow({"window_start": s}, _functions(w, pool)) for s, w in enough.items()],
            rate,
        )
    yield finding("impossible", [_impossible(collection, s, w) for s, w in enough.items()], rate)
    change = [
        ScoredWindow({"window_start": start}, _change(collection, before, after))
        for (_, before), (start, after) in pairwise(enough.items())
    ]
    yield finding("change", change, rate)


def judge_pack(collection: Collection, pack: wire.Pack) -> float | None:
    """p-value of a pack's numbers of ones; None if it holds no bits, or is of another collection."""
    bits = bits_of(collection.mechanism)
    if bits is None:
        return None
    header = (pack.fingerprint, pack.mechanism, pack.width)
    if header != (collection.fingerprint, wire.RAPPOR_NUMBER, collection.width):
        return None
    ones = np.bitwise_count(wire.bit_rows(pack)).sum(axis=1, dtype=np.int64)
    return popcount_p_value(ones, bits)


def _impossible(collection: Collection, start: int, window: WindowCounts) -> ScoredWindow:
    """The least likely counter of a window, and the p-value of all of them together."""
    mechanism = collection.mechanism
    p_values = impossible_p_values(window.counts, window.cohort_sizes[:, None], *mechanism.counter_rates)
    cohort, column = map(int, np.unravel_index(int(p_values.argmin()), p_values.shape))
    p_value = min(1.0, float(p_values.min()) * p_values.size)
    if bloom_of(mechanism) is not None:
        return ScoredWindow({"window_start": start, "cohort": cohort, "bit": column}, p_value)
    if collection.number is not None:
        return ScoredWindow({"window_start": start, "reported_cell": column}, p_value)
    if (pool := pool_of(mechanism)) is not None:
        function, bucket = divmod(column, pool.hash_buckets)
        level = {"level": cohort + 1} if collection.cohorts > 1 else {}
        place: dict[str, int | str] = {"window_start": start, **level, "function": function, "bucket": bucket}
        return ScoredWindow(place, p_value)
    labels = collection.labels()
    return ScoredWindow(
        {"window_start": start, "value": labels[column] if column < len(labels) else "other"}, p_value
    )


def _functions(window: WindowCounts, mechanism: FunctionPool) -> float:
    """Test whether the functions are drawn uniformly, whatever the values; a block of them at a time."""
    block = block_of(mechanism.hash_buckets).functions * mechanism.hash_buckets
    return cohort_p_value(window.counts.sum(axis=0).reshape(-1, block).sum(axis=1))


def _change(collection: Collection, before: WindowCounts, after: WindowCounts) -> float:
    if collection.mechanism.is_of_bits:
        p_values = change_p_values(before.counts, before.cohort_sizes, after.counts, after.cohort_sizes)
        return min(1.0, float(p_values.min()) * p_values.size)
    return change_p_value(before.counts.reshape(-1), after.counts.reshape(-1))
