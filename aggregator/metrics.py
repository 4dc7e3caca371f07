"""What a worker tells Prometheus. No label holds a cohort, a client, or a value that came from input."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, isfinite

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from aggregator.estimate_record import EstimateRecord
from aggregator.outcomes import Outcomes
from aggregator.strays import Strays
from estimators.collection import Collection

VALUES_SHOWN = 20


class WorkerMetrics:
    """One worker's metrics, in a registry of their own."""

    def __init__(self, collections: Mapping[int, Collection]) -> None:
        self.collections = collections
        self.registry = CollectorRegistry()
        self.strays = Strays()
        self._shown: dict[str, int] = {}  # window start of the estimate shown, by collection
        self.packs = self._counter("packs", "Packs read from the log, by what became of them.", "result")
        self.rejected = self._counter("packs_rejected", "Packs turned away.", "reason")
        self.reports = self._counter("reports", "Reports counted.", "collection")
        self.resyncs = self._counter("resyncs", "Ledgers that were lost and opened again.")
        self.estimate_failures = self._counter(
            "estimate_failures", "Windows whose counts could not be estimated.", "collection"
        )
        self.windows_lost = self._counter(
            "windows_lost",
            "Windows whose counts were deleted before a final estimate of them was published. Remedy: a "
            "retention_seconds longer than the longest outage of the workers, unless records were lost or "
            "counts could not be estimated.",
            "collection",
        )
        self.finals_revised = self._counter(
            "finals_revised", "Final estimates that replaced one, since counts had changed.", "collection"
        )
        for collection in collections.values():
            for told in (self.windows_lost, self.finals_revised):
                told.labels(collection.name)  # as 0, so that the first one is an increase
        self.checkpoint_seconds = self._histogram("checkpoint_seconds", "Time to store a ledger's changes.")
        self.estimate_seconds = self._histogram("estimate_seconds", "Time to estimate one window.")
        self.loop_delay = self._histogram(
            "loop_delay_seconds",
            "How late the event loop woke a task: what no step may keep the heartbeats waiting for.",
            (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0),
        )
        self.position = self._gauge("position_records", "Next offset of `reports` to count.", "partition")
        self.lag = self._gauge("lag_records", "Records of `reports` that are not counted yet.", "partition")
        self.stalled = self._gauge(
            "stalled",
            "1 while nothing can be stored, or records wait and none is: the worker is not ready.",
            "partition",
        )
        self.watermark = self._gauge(
            "watermark_timestamp_seconds", "Highest append time counted, unix time.", "partition"
        )
        self.frequency = self._gauge(
            "estimate_frequency_ratio", "Estimated share of the reports.", "collection", "value"
        )
        self.std_error = self._gauge(
            "estimate_std_error_ratio", "Standard error of that share.", "collection", "value"
        )
        self.estimated_reports = self._gauge("estimate_reports", "Reports behind the estimate.", "collection")
        self.estimated_window = self._gauge(
            "estimate_window_start_timestamp_seconds", "Start of its window, unix time.", "collection"
        )
        self.epsilon = self._gauge("epsilon_per_report_nats", "Privacy loss of one report.", "collection")
        self.epsilon_permanent = self._gauge(
            "epsilon_permanent_nats",
            "Bound on the privacy loss of all reports of one client whose value stays the same.",
            "collection",
        )
        self._show_privacy(collections.values())

    def count(self, outcomes: Outcomes) -> None:
        """Count the packs of a transaction that was committed."""
        self.packs.labels("counted").inc(outcomes.packs)
        self.packs.labels("rejected").inc(outcomes.rejected.total())
        for fingerprint, reports in outcomes.reports.items():
            self.reports.labels(self.collections[fingerprint].name).inc(reports)
        for reason, packs in outcomes.rejected.items():
            self.rejected.labels(reason).inc(packs)
        self.strays.add(outcomes.stray)

    def show_progress(self, partition: int, position: int, watermark_ms: int) -> None:
        """Show how far a partition's ledger is stored."""
        self.position.labels(str(partition)).set(position)
        self.watermark.labels(str(partition)).set(watermark_ms / 1000)

    def forget_partition(self, partition: int) -> None:
        """Stop telling of a partition that this worker owns no more, and of its collections."""
        for gauge in (self.position, self.lag, self.stalled, self.watermark):
            gauge.remove_by_labels({"partition": str(partition)})

    def show_estimate(self, record: EstimateRecord) -> None:
        """Show the newest estimate of a collection: its most frequent values."""
        name = record.collection
        if record.window_start < self._shown.get(name, 0):
            return  # a late final estimate of an older window
        self.forget_estimate(name)
        self._shown[name] = record.window_start
        self.estimated_reports.labels(name).set(record.reports)
        self.estimated_window.labels(name).set(record.window_start)
        for i in np.argsort(-np.asarray(record.frequency), kind="stable")[:VALUES_SHOWN]:
            self.frequency.labels(name, record.values[i]).set(record.frequency[i])
            error = record.std_error[i]
            self.std_error.labels(name, record.values[i]).set(inf if error is None else error)

    def forget_estimate(self, collection: str) -> None:
        """Stop telling of a collection that another worker estimates now."""
        self._shown.pop(collection, None)
        gauges = (self.frequency, self.std_error, self.estimated_reports, self.estimated_window)
        for gauge in gauges:
            gauge.remove_by_labels({"collection": collection})

    def _show_privacy(self, collections: Iterable[Collection]) -> None:
        for collection in collections:
            self.epsilon.labels(collection.name).set(collection.mechanism.epsilon)
            if isfinite(collection.epsilon_inf):
                self.epsilon_permanent.labels(collection.name).set(collection.epsilon_inf)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(f"deniable_{name}", meaning, labels, registry=self.registry)

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return Gauge(f"deniable_{name}", meaning, labels, registry=self.registry)

    def _histogram(
        self, name: str, meaning: str, buckets: Sequence[float] = Histogram.DEFAULT_BUCKETS
    ) -> Histogram:
        return Histogram(f"deniable_{name}", meaning, registry=self.registry, buckets=buckets)
