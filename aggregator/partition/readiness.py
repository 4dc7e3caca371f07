"""Whether an owned partition is served: its ledger is stored, and gets on while there are records to count.

Rule: what is counted proves nothing. It is thrown away, and counted again, as often as it cannot be stored.
"""

import time

import structlog

from aggregator.metrics.worker_metrics import WorkerMetrics
from aggregator.partition.failures import why
from aggregator.partition.timing import DEFAULT, Timing

log = structlog.get_logger()


class Readiness:
    """Of one partition, over all openings of its ledger.

    Parameters
    ----------
    partition : of `reports`.
    metrics : of the worker.
    timing : when a standstill makes the partition not ready.
    """

    def __init__(self, partition: int, metrics: WorkerMetrics, timing: Timing = DEFAULT) -> None:
        self.partition = partition
        self.metrics = metrics
        self.timing = timing
        self.stands_still = False
        self._trouble: str | None = f"partition {partition}: opening the ledger"
        self._stored_position = 0
        self._watched_position = -1
        self._advanced_at = time.monotonic()
        self._stored_at = time.monotonic()  # when a checkpoint was last stored, or was not needed
        self._told = ""  # why the ledger was lost, until it is open again: minutes without Kafka are one line

    @property
    def reason_not_ready(self) -> str | None:
        """Why this partition is not served; None when it is.

        A ledger that is open proves nothing yet: it may be refused every transaction.
        """
        if self._trouble is None and self._is_silent:
            return f"partition {self.partition}: nothing could be stored for {self.timing.unstored:g} s"
        return self._trouble

    def tell(self) -> None:
        """Show whether counting or storing stands still, be the ledger open or not."""
        self.metrics.stalled.labels(str(self.partition)).set(self.stands_still or self._is_silent)

    def opened(self, position: int) -> None:
        """The ledger is open at this position, which is stored."""
        log.info("ledger open", partition=self.partition, position=position)
        self._stored_position = position
        self._told = ""

    def lost(self, error: BaseException) -> None:
        """The ledger is thrown away, and will be opened again."""
        reason = why(error)
        self._trouble = f"partition {self.partition}: {reason}; opening the ledger again"
        self.metrics.lag.remove_by_labels({"partition": str(self.partition)})
        if reason != self._told:
            log.warning("ledger lost", partition=self.partition, reason=reason, error=repr(error))
            self._told = reason
        self.metrics.resyncs.inc()

    def stored(self, position: int) -> None:
        """All that was counted before this position is stored."""
        self._stored_position = position
        self._stored_at = time.monotonic()
        if not self.stands_still:
            self._trouble = None

    def watch(self, end: int) -> None:
        """Tell how far what is stored is from the log's end, and whether it stands still there."""
        position = self._stored_position
        self.metrics.lag.labels(str(self.partition)).set(max(0, end - position))
        now = time.monotonic()
        if position >= end or position != self._watched_position:
            self._watched_position, self._advanced_at = position, now
        self.stands_still = now - self._advanced_at > self.timing.standstill
        if self.stands_still:
            stuck = f"counting stands still at offset {position}, the log ends at {end}"
            self._trouble = f"partition {self.partition}: {stuck}"

    @property
    def _is_silent(self) -> bool:
        return time.monotonic() - self._stored_at > self.timing.unstored
