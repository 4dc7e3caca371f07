"""Many collections of many values: what a page of a large deployment has to bear."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import T0, changed
from tests.support.estimators.simulation import generator, krr_counts, zipf_counts

VALUES = 1000
REPORTS = 1_000_000


def crowd(number: int, values: int = VALUES) -> dict[int, Collection]:
    """Return collections `shop-000`, `shop-001` … of values `item-0000`, `item-0001` …, by fingerprint."""
    first = Collection(
        name="shop-000",
        mechanism=KRR.from_epsilon(values, math.log(values)),
        values=tuple(f"item-{value:04}" for value in range(values)),
        window_seconds=10,
        grace_seconds=5,
    )
    named = [replace(first, name=f"shop-{each:03}") for each in range(number)]
    return {collection.fingerprint: collection for collection in named}


def crowd_estimates(collections: Sequence[Collection], windows: int) -> Iterator[EstimateRecord]:
    """Yield so many windows of each collection, the oldest first; the newest starts at T0.

    The counts are simulated once, and are those of all collections and windows: only time and name differ.
    """
    mechanism = collections[0].mechanism
    assert isinstance(mechanism, KRR)
    counts = krr_counts(generator(3), zipf_counts(mechanism.k, REPORTS, 1.0), mechanism)
    window = WindowCounts(counts[None], counts[None].sum(axis=1), packs=REPORTS // 1000, rejected=0)
    result = window_estimate.estimate(collections[0], window)
    record = window_estimate.record_of(collections[0], T0, window, result, final=False)
    for step in range(windows):
        start = T0 - 10 * (windows - 1 - step)
        for each in collections:
            yield changed(
                record,
                collection=each.name,
                fingerprint=f"{each.fingerprint:016x}",
                window_start=start,
                window_end=start + 10,
                final=step < windows - 1,
            )
