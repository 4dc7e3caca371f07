"""Whether an owned partition is served: its ledger is stored, and advances while there are records to count.

Rule: only stored counts prove progress. Counts that cannot be stored are discarded and counted again.
"""

import time

import structlog

from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.partition.failures import why
from deniable.aggregator.partition.timing import DEFAULT, PartitionTiming
from deniable.cluster.connection.outage import Outage, described, is_outage

log = structlog.get_logger()


class Readiness:
    """Readiness of one partition, across reopenings of its ledger.

    Parameters
    ----------
    partition : of `reports`.
    metrics : of the worker.
    outage : of the worker: what it explains is logged once, not by partition.
    timing : when a standstill makes the partition not ready.
    """

    def __init__(
        self, partition: int, metrics: WorkerMetrics, outage: Outage, timing: PartitionTiming = DEFAULT
    ) -> None:
        self.partition = partition
        self.outage = outage
        self.metrics = metrics
        self.timing = timing
        self.is_stalled = False
        self._trouble: str | None = f"partition {partition}: opening the ledger"
        self._fails = False  # for Kafka, since the last loss
        self._stored_position = 0
        self._watched_position = -1
        self._advanced_at = time.monotonic()
        self._stored_at = time.monotonic()  # when a checkpoint was last stored or not needed
        self._logged_reason: str | None = ""  # of the last loss; None once the ledger has proved usable

    @property
    def reason_not_ready(self) -> str | None:
        """Why this partition is not served; None if it is.

        An open ledger is not enough: the broker may refuse its transactions.
        """
        if self._trouble and self._fails and self.outage.cause:
            return f"partition {self.partition}: {self.outage}; opening the ledger again"
        if self._trouble is None and self._is_silent:
            return f"partition {self.partition}: nothing could be stored for {self.timing.unstored:g} s"
        return self._trouble

    def show_standstill(self) -> None:
        """Show whether counting or storing is stalled, whether or not the ledger is open."""
        self.metrics.stalled.labels(str(self.partition)).set(self.is_stalled or self._is_silent)

    def opened(self, position: int) -> None:
        """Note that the ledger is open at this stored position; it is said once it has proved usable."""
        self._stored_position = position

    def lost(self, error: BaseException) -> None:
        """Note that the ledger was discarded and will be reopened."""
        self._fails = is_outage(error)
        reason = described(error) if self._fails else why(error)
        self._trouble = f"partition {self.partition}: {reason}; opening the ledger again"
        self.metrics.lag.remove_by_labels({"partition": str(self.partition)})
        if self._fails:
            self.outage.failed(self.partition, error)
        elif reason != self._logged_reason:
            log.warning("ledger lost", partition=self.partition, reason=reason, error=repr(error))
            self._logged_reason = reason
        self.metrics.resyncs.inc()

    def stored(self, position: int) -> None:
        """Note that all counts before this position are stored."""
        if self._logged_reason is not None:
            log.info("ledger open", partition=self.partition, position=self._stored_position)
            self._logged_reason = None
        self._stored_position = position
        self._stored_at = time.monotonic()
        self.outage.answered(self.partition)
        if not self.is_stalled:
            self._trouble = None

    def watch(self, end: int) -> None:
        """Show the lag of the stored position behind the log's end, and whether it is stalled."""
        position = self._stored_position
        self.metrics.lag.labels(str(self.partition)).set(max(0, end - position))
        now = time.monotonic()
        if position >= end or position != self._watched_position:
            self._watched_position, self._advanced_at = position, now
        self.is_stalled = now - self._advanced_at > self.timing.standstill
        if self.is_stalled:
            stuck = f"counting stands still at offset {position}, the log ends at {end}"
            self._trouble = f"partition {self.partition}: {stuck}"

    @property
    def _is_silent(self) -> bool:
        return time.monotonic() - self._stored_at > self.timing.unstored
