"""What a ledger is lost by, while its worker goes on."""

from aiokafka.errors import (
    KafkaConnectionError,
    KafkaTimeoutError,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)


class RecordsLost(Exception):
    """Retention has deleted records that were never counted; no final estimate may be made any more."""

    def __init__(self, partition: int, position: int, start: int) -> None:
        super().__init__(
            f"partition {partition} of the reports topic now starts at offset {start}, but {position} is the "
            f"next to count: {start - position} offsets were deleted uncounted; raise the topic's retention; "
            f"to go on without them, run deniable replay --accept-loss"
        )


class RecordNotCounted(Exception):
    """There was no memory to count a record; nobody knows how much of it was counted."""

    def __init__(self, partition: int, position: int) -> None:
        super().__init__(f"partition {partition}: not enough memory to count the record at offset {position}")


def why(error: BaseException) -> str:
    """What lost the ledger, in words."""
    if isinstance(error, (KafkaTimeoutError, TimeoutError, KafkaConnectionError, AssertionError)):
        # One sentence: a broker that is away looks now like the one, now like the other.
        return "Kafka does not answer or let us in, or a topic is missing; deniable doctor says which"
    if isinstance(error, ProducerFenced):
        return "another worker or command has opened it"
    if isinstance(error, UnknownTopicOrPartitionError):
        return "a topic of this deployment is missing; deniable topics check says which"
    return str(error) or type(error).__name__
