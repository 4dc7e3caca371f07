"""Foreign records in a topic that we follow, logged at a limited rate."""

import structlog
from aiokafka import TopicPartition

QUIET_SECONDS = 60.0  # between two log lines, however many records come

log = structlog.get_logger()


class ForeignRecords:
    """Number and first offset of foreign records by partition; their contents are not kept."""

    def __init__(self) -> None:
        self._unlogged: dict[TopicPartition, tuple[int, int]] = {}
        self._quiet_until: dict[TopicPartition, float] = {}

    def add(self, source: TopicPartition, offset: int) -> None:
        """Count one foreign record."""
        first, records = self._unlogged.get(source, (offset, 0))
        self._unlogged[source] = first, records + 1

    def log_new(self, now: float) -> None:
        """Log new records, one line per partition, unless its last line is too recent.

        Parameters
        ----------
        now : seconds of a monotonic clock.
        """
        due = [source for source in self._unlogged if now >= self._quiet_until.get(source, now)]
        for source in due:
            first, records = self._unlogged.pop(source)
            log.warning(
                "skipped foreign records",
                topic=source.topic,
                partition=source.partition,
                records=records,
                first_offset=first,
            )
            self._quiet_until[source] = now + QUIET_SECONDS
