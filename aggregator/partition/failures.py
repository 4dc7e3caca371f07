"""Failures by which a ledger is lost while its worker continues."""

from aiokafka.errors import ProducerFenced, UnknownTopicOrPartitionError

from deniable.estimators.errors import DeniableError, place_of


class RecordsLostError(DeniableError):
    """Retention deleted uncounted records; windows that lack them get no final estimate."""

    def __init__(self, partition: int, position: int, start: int) -> None:
        self.what = (
            f"partition {partition} of the reports topic now starts at offset {start}, but {position} is the "
            f"next to count: {start - position} offsets were deleted uncounted"
        )
        self.remedy = "Raise the topic's retention; to go on without them, run deniable replay --accept-loss"
        super().__init__(f"{self.what}. {self.remedy}")


class RecordNotCountedError(Exception):
    """A record was not counted, or only in part: memory ran out, or there is a defect."""


def uncounted(partition: int, offset: int, error: Exception) -> str:
    """Message for an uncounted record. Keeping the error itself would keep ledger and record in memory."""
    if isinstance(error, MemoryError):
        return f"partition {partition}: not enough memory to count the record at offset {offset}"
    defect = place_of(error)
    return f"partition {partition}: counting the record at offset {offset} failed by a defect, {defect}"


def why(error: BaseException) -> str:
    """Why the ledger was lost, if by no outage, for people."""
    if isinstance(error, ProducerFenced):
        return "another worker or command has opened it"
    if isinstance(error, UnknownTopicOrPartitionError):
        return "a topic of this deployment is missing; deniable topics check says which"
    return str(error) or type(error).__name__
