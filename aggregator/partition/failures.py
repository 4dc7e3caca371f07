"""What a ledger is lost by, while its worker goes on."""

import traceback
from pathlib import Path

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)


class RecordsLostError(Exception):
    """Retention has deleted records that were never counted; no final estimate may be made any more."""

    def __init__(self, partition: int, position: int, start: int) -> None:
        super().__init__(
            f"partition {partition} of the reports topic now starts at offset {start}, but {position} is the "
            f"next to count: {start - position} offsets were deleted uncounted; raise the topic's retention; "
            f"to go on without them, run deniable replay --accept-loss"
        )


class RecordNotCountedError(Exception):
    """A record was not counted, or not all of it: for want of memory, or by a defect."""


def uncounted(partition: int, offset: int, error: Exception) -> str:
    """Which record was not counted, and why. The error itself would keep ledger and record in memory."""
    if isinstance(error, MemoryError):
        return f"partition {partition}: not enough memory to count the record at offset {offset}"
    frames = traceback.extract_tb(error.__traceback__)[-1:]
    places = [f" in {Path(frame.filename).name}:{frame.lineno}" for frame in frames]
    defect = "".join([type(error).__name__, *places])  # its message might tell of the record
    return f"partition {partition}: counting the record at offset {offset} failed by a defect, {defect}"


def why(error: BaseException) -> str:
    """What lost the ledger, in words."""
    if isinstance(error, (KafkaTimeoutError, TimeoutError, KafkaConnectionError)):
        # One sentence: a broker that is away looks now like the one, now like the other.
        return "Kafka does not answer or let us in, or a topic is missing; deniable doctor says which"
    if isinstance(error, ProducerFenced):
        return "another worker or command has opened it"
    if isinstance(error, UnknownTopicOrPartitionError):
        return "a topic of this deployment is missing; deniable topics check says which"
    return str(error) or type(error).__name__
