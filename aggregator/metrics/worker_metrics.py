"""The metrics of a worker; `definitions` lists their names, labels and meanings."""

from collections import Counter
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from deniable.aggregator.ledger.acceptance import REASONS
from deniable.aggregator.ledger.outcomes import PackOutcomes
from deniable.aggregator.metrics import definitions
from deniable.aggregator.metrics.change_metrics import ChangeMetrics
from deniable.aggregator.metrics.estimate_metrics import EstimateMetrics
from deniable.aggregator.metrics.privacy_metrics import PrivacyMetrics
from deniable.aggregator.metrics.rejected_packs import OtherParameters, UnattributedRejections
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.final_window import FinalWindow
from deniable.estimators.canary_fit import alarm_threshold, chi_square
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.traits import SymmetricMechanism


class WorkerMetrics:
    """One worker's metrics, in a separate registry."""

    def __init__(self, collections: Mapping[int, Collection]) -> None:
        self.collections = collections
        self.registry = CollectorRegistry()
        self.unattributed = UnattributedRejections()
        self.other_parameters = OtherParameters()
        self.packs = definitions.PACKS.register(self.registry)
        self.rejected = definitions.PACKS_REJECTED.register(self.registry)
        self.reports = definitions.REPORTS.register(self.registry)
        self.resyncs = definitions.RESYNCS.register(self.registry)
        self.position = definitions.POSITION.register(self.registry)
        self.lag = definitions.LAG.register(self.registry)
        self.stalled = definitions.STALLED.register(self.registry)
        self.watermark = definitions.WATERMARK.register(self.registry)
        self.checkpoint_seconds = definitions.CHECKPOINT.register(self.registry)
        self.loop_delay = definitions.LOOP_DELAY.register(self.registry)
        self.estimate_seconds = definitions.ESTIMATE.register(self.registry)
        self.growing_seconds = definitions.GROWING.register(self.registry)
        self.estimate_failures = definitions.ESTIMATE_FAILURES.register(self.registry)
        self.windows = definitions.WINDOWS.register(self.registry)
        self.windows_lost = definitions.WINDOWS_LOST.register(self.registry)
        self.finals_revised = definitions.FINALS_REVISED.register(self.registry)
        self.canary_chi_square = definitions.CANARY_CHI_SQUARE.register(self.registry)
        self.canary_threshold = definitions.CANARY_THRESHOLD.register(self.registry)
        self.canary_windows = definitions.CANARY_WINDOWS.register(self.registry)
        self.canary_window_seconds = definitions.CANARY_WINDOW.register(self.registry)
        names = [collection.name for collection in collections.values()]
        self.estimates = EstimateMetrics(names, self.registry)
        numbers = {each.name for each in collections.values() if each.number is not None}
        self.changes = ChangeMetrics(self.registry, numbers)
        self.privacy = PrivacyMetrics(self.registry)
        for collection in collections.values():
            self.privacy.show_collection(collection)
            if collection.canary:
                self.canary_window_seconds.labels(collection.name).set(collection.window_seconds)
        self._begin_at_zero(names)

    def count(self, outcomes: PackOutcomes) -> None:
        """Count the packs of a committed transaction."""
        self.packs.labels("counted").inc(outcomes.packs)
        self.packs.labels("rejected").inc(outcomes.rejected.total())
        self._count_reports(outcomes.reports, "counted")
        self._count_reports(outcomes.rejected_reports, "rejected")
        for reason, packs in outcomes.rejected.items():
            self.rejected.labels(reason).inc(packs)
        self.unattributed.add(outcomes.unattributed)
        self.other_parameters.add(outcomes.same_names.values())

    def show_progress(self, partition: int, position: int, watermark_ms: int) -> None:
        """Show the stored progress of a partition's ledger."""
        self.position.labels(str(partition)).set(position)
        self.watermark.labels(str(partition)).set(watermark_ms / 1000)

    def forget_partition(self, partition: int) -> None:
        """Remove the metrics of a partition that this worker no longer owns."""
        for gauge in (self.position, self.lag, self.stalled, self.watermark):
            gauge.remove_by_labels({"partition": str(partition)})

    def show_windows(self, states: Mapping[str, Mapping[str, int]]) -> None:
        """Show how many windows are in which state, by collection."""
        for name, numbers in states.items():
            for state, windows in numbers.items():
                self.windows.labels(name, state).set(windows)

    def show_estimate(self, record: EstimateRecord) -> None:
        """Show a committed estimate, unless one of a later window is shown."""
        self.estimates.show(record)

    def show_canary(self, window: FinalWindow) -> None:
        """Show the chi-square of a committed final window, if it is a canary's and has enough reports."""
        collection = self.collections[window.fingerprint]
        mechanism = collection.mechanism
        if not collection.canary or not isinstance(mechanism, SymmetricMechanism):
            return
        if window.counts.reports >= collection.minimum_reports:
            found = chi_square(window.counts.counts[0], mechanism)
            threshold = alarm_threshold(mechanism.k, collection.window_seconds)
            self.canary_chi_square.labels(collection.name).set(found)
            self.canary_threshold.labels(collection.name).set(threshold)
            result = "beyond" if found > threshold else "inside"
            self.canary_windows.labels(collection.name, result).inc()

    def forget_estimate(self, collection: str) -> None:
        """Remove the metrics of a collection that another worker estimates now."""
        self.estimates.forget(collection)
        for gauge in (self.windows, self.canary_chi_square, self.canary_threshold):
            gauge.remove_by_labels({"collection": collection})

    def _count_reports(self, reports: Counter[int], result: str) -> None:
        for fingerprint, number in reports.items():
            self.reports.labels(self.collections[fingerprint].name, result).inc(number)

    def _begin_at_zero(self, names: list[str]) -> None:
        """Export counters as 0 before their first event, so that it shows as an increase."""
        for result in ("counted", "rejected"):
            self.packs.labels(result)
            for name in names:
                self.reports.labels(name, result)
        for reason in REASONS:
            self.rejected.labels(reason)
        for counter in (self.estimate_failures, self.windows_lost, self.finals_revised):
            for name in names:
                counter.labels(name)
        for collection in self.collections.values():
            for result in ("inside", "beyond") if collection.canary else ():
                self.canary_windows.labels(collection.name, result)
