"""The estimate of a window in which no report counts any more: it replaces one that had reports."""

from deniable.aggregator.records.estimate import RECORD_VERSION, EstimateRecord
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection


def empty_record_of(collection: Collection, window_start: int, window: WindowCounts) -> EstimateRecord:
    """A final record of no reports and no values."""
    return EstimateRecord(
        version=RECORD_VERSION,
        collection=collection.name,
        fingerprint=f"{collection.fingerprint:016x}",
        window_start=window_start,
        window_end=collection.window_end(window_start),
        revision=window.packs,
        final=True,
        reports=window.reports,
        packs=window.packs,
        rejected=window.rejected,
        mechanism=collection.mechanism.name,
        estimator="none",
        epsilon=collection.mechanism.epsilon,
        values=[],
        frequency=[],
        count=[],
        std_error=[],
        low=[],
        high=[],
        significant=[],
        omitted=0,
        other=None,
        diagnostics={},
    )
