"""Records that are none of ours in a topic that we follow: told in the log now and then."""

import structlog
from aiokafka import TopicPartition

QUIET_SECONDS = 60.0  # how long after a line the next one waits, whatever senders do

log = structlog.get_logger()


class ForeignRecords:
    """How many there were, and the first one's offset, by partition; of what they hold no note is kept."""

    def __init__(self) -> None:
        self._unlogged: dict[TopicPartition, tuple[int, int]] = {}
        self._quiet_until: dict[TopicPartition, float] = {}

    def add(self, source: TopicPartition, offset: int) -> None:
        """Take in a further one."""
        first, records = self._unlogged.get(source, (offset, 0))
        self._unlogged[source] = first, records + 1

    def log_new(self, now: float) -> None:
        """Log, a line for each partition, what came since its last line, unless that is too recent.

        Parameters
        ----------
        now : seconds of a monotonic clock.
        """
        due = [source for source in self._unlogged if now >= self._quiet_until.get(source, now)]
        for source in due:
            first, records = self._unlogged.pop(source)
            log.warning(
                "records that are none of ours are passed over",
                topic=source.topic,
                partition=source.partition,
                records=records,
                first_offset=first,
            )
            self._quiet_until[source] = now + QUIET_SECONDS
