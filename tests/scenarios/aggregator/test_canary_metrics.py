"""Canary metrics of a worker cover committed final windows with enough reports."""

from dataclasses import replace

import numpy as np
import pytest

from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.terms import terms_of
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.estimators.canary import report_shares
from deniable.estimators.canary_fit import alarm_threshold, chi_square
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.support.aggregator.builders import FRUIT, PARTITIONS, T0, estimate_due, progress_row

REPORTS = 1_000_000
MECHANISM = KRR.from_epsilon(4, 2.0)
CANARY = replace(
    FRUIT,
    name="canary",
    mechanism=MECHANISM,
    values=(),
    other=False,
    minimum_reports=10_000,
    retention_seconds=60,
    canary=True,
)
THRESHOLD = alarm_threshold(4, FRUIT.window_seconds)
EXPECTED = np.rint(report_shares(MECHANISM) * REPORTS).astype(np.int64)
LOST = EXPECTED - EXPECTED * [0, 2, 0, 0] // 100


def estimator_of(collection: Collection) -> Estimator:
    """An estimator of one collection; every partition has published its terms."""
    collections = {collection.fingerprint: collection}
    metrics = WorkerMetrics(collections)
    estimator = Estimator(collections, PARTITIONS, {}, LostWindows(metrics), metrics)
    terms = row_values.encode_terms(terms_of(collection))
    key = row_keys.encode_key(row_keys.TermsKey(collection.fingerprint))
    for source in range(PARTITIONS):
        estimator.take(row_keys.with_source(key, source), terms)
    return estimator


def count(estimator: Estimator, counts: np.ndarray, window_start: int = T0, packs: int = 1) -> None:
    """Let a partition publish this many reports of each value."""
    (fingerprint,) = estimator.collections
    key = row_keys.encode_key(row_keys.CountKey(fingerprint, window_start, 0, 0))
    counters = row_values.CounterPage(int(counts.sum()), packs, counts)
    estimator.take(row_keys.with_source(key, 0), row_values.encode_counters(counters))


def close(estimator: Estimator, window_start: int = T0) -> None:
    """Let every partition close beyond this window, then estimate."""
    (collection,) = estimator.collections.values()
    row = progress_row(1, collection.closes_at(window_start) * 1000 + 1)
    for source in range(PARTITIONS):
        estimator.take(row_keys.with_source(b"P", source), row)
    estimate_due(estimator)
    estimator.drain()


def shown(estimator: Estimator) -> tuple[float | None, float | None]:
    """Chi-square and threshold."""
    value = estimator.metrics.registry.get_sample_value
    labels = {"collection": "canary"}
    return value("deniable_canary_chi_square", labels), value("deniable_canary_threshold", labels)


def windows(estimator: Estimator) -> dict[str, float]:
    """Number of windows by result."""
    families = estimator.metrics.registry.collect()
    samples = [sample for family in families for sample in family.samples]
    return {s.labels["result"]: s.value for s in samples if s.name == "deniable_canary_windows_total"}


def test_final_window_is_reported_once_committed() -> None:
    estimator = estimator_of(CANARY)
    count(estimator, LOST)
    estimate_due(estimator)
    estimator.drain()
    estimator.show_published()
    assert shown(estimator) == (None, None), "the window is not final"
    close(estimator)
    assert shown(estimator) == (None, None), "nothing is committed"
    estimator.show_published()
    assert shown(estimator) == (chi_square(LOST, MECHANISM), THRESHOLD)
    assert shown(estimator)[0] > THRESHOLD
    assert windows(estimator) == {"inside": 0, "beyond": 1}


def test_windows_of_one_transaction_are_all_counted() -> None:
    """The gauge holds only the last one."""
    estimator = estimator_of(CANARY)
    assert windows(estimator) == {"inside": 0, "beyond": 0}, "so that the first one is an increase"
    later = [T0 + i * CANARY.window_seconds for i in range(3)]
    for window_start, counts in zip(later, (LOST, LOST, EXPECTED), strict=True):
        count(estimator, counts, window_start)
    close(estimator, later[-1])
    estimator.show_published()
    assert shown(estimator)[0] < THRESHOLD
    assert windows(estimator) == {"inside": 1, "beyond": 2}
    estimator.metrics.forget_estimate("canary")
    assert windows(estimator) == {"inside": 1, "beyond": 2}, "a counter of this process stays"


def test_workers_export_window_length_of_canaries() -> None:
    """Every worker does, so an outdated canary is detectable before any estimate exists."""
    metrics = WorkerMetrics({each.fingerprint: each for each in (CANARY, FRUIT)})
    lengths = {
        s.labels["collection"]: s.value
        for family in metrics.registry.collect()
        for s in family.samples
        if s.name == "deniable_canary_window_seconds"
    }
    assert lengths == {"canary": CANARY.window_seconds}


def test_last_window_is_exported_until_its_collection_ends() -> None:
    estimator = estimator_of(CANARY)
    count(estimator, LOST)
    close(estimator)
    estimator.show_published()
    later = T0 + CANARY.window_seconds
    count(estimator, EXPECTED, later)
    close(estimator, later)
    estimator.show_published()
    assert shown(estimator) == (pytest.approx(0, abs=1e-3), THRESHOLD)
    estimator.metrics.forget_estimate("canary")
    assert shown(estimator) == (None, None)


@pytest.mark.parametrize(
    "collection", [replace(CANARY, canary=False), replace(CANARY, minimum_reports=10**7)]
)
def test_others_and_small_windows_have_no_canary_metrics(collection: Collection) -> None:
    estimator = estimator_of(collection)
    count(estimator, LOST)
    close(estimator)
    estimator.show_published()
    assert shown(estimator) == (None, None)
    assert not any(windows(estimator).values())
