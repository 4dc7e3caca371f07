"""What a record's `other` adds up where a collection has more values than a record takes."""

import numpy as np

from bench.estimators.conditional.buckets import bit_probabilities
from bench.estimators.conditional.fixed_clients import EVEN, ONE, SKEWED, held, names
from bench.estimators.conditional.judging import Measured, Run
from bench.estimators.conditional.measuring import scalar, window_of
from bench.estimators.populations import Counts, report_counts, shown_bits
from deniable.aggregator.estimation.window_estimate import VALUES_PER_RECORD, estimate, record_of
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor

VALUES = VALUES_PER_RECORD + 200
POPULATIONS = (SKEWED, EVEN, ONE)


def long_krr_of(epsilon: float) -> KRR:
    """k-RR of more values than a record takes."""
    return KRR.from_epsilon(VALUES, epsilon)


def long_hot_of(epsilon: float) -> HotRappor:
    """One-hot RAPPOR of more values than a record takes."""
    return HotRappor.from_probabilities(VALUES, 1, 0.0, *bit_probabilities(epsilon, 1))


def krr_run(mechanism: KRR, population: str, reports: int) -> Run:
    """One window of k-RR."""
    collection, truth = Collection("table", mechanism, names(VALUES)), held(population, reports, VALUES)
    return lambda rng: _measured(collection, window_of(report_counts(rng, truth, mechanism)), truth)


def hot_run(mechanism: HotRappor, population: str, reports: int) -> Run:
    """One window of one-hot RAPPOR."""
    collection, truth = Collection("table", mechanism, names(VALUES)), held(population, reports, VALUES)
    size = np.array([reports])
    return lambda rng: _measured(
        collection, window_of(shown_bits(rng, truth, reports, mechanism), size), truth
    )


def _measured(collection: Collection, window: WindowCounts, truth: Counts) -> dict[str, Measured]:
    """Measure `other` by the share of those values that this run leaves out."""
    record = record_of(collection, 0, window, estimate(collection, window), final=True)
    share = dict(zip(collection.labels(), truth.tolist(), strict=True))
    left_out = window.reports - sum(share[label] for label in record.values)
    if record.other is None:
        return {"other": scalar(None, None, 0.0)}
    return {"other": scalar(record.other.low, record.other.high, left_out / window.reports)}
