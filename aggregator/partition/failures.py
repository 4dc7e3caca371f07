"""Failures by which a ledger is lost while its worker continues."""

import asyncio

from aiokafka.errors import ProducerFenced, UnknownTopicOrPartitionError

from deniable.aggregator.partition.fetching.last_record import LastRecord
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


class LogReplacedError(DeniableError):
    """The log has lost records that were counted; what it has in their place is not counted.

    Parameters
    ----------
    partition : of `reports`.
    what : the log has, or lacks.
    """

    def __init__(self, partition: int, what: str) -> None:
        self.what = (
            f"partition {partition} of the reports topic {what}: it has lost counted records, by an unclean "
            f"election or a disk that was set back"
        )
        self.remedy = (
            "If a broker still holds them, let it lead; to go on without them, run deniable replay "
            "--accept-loss"
        )
        super().__init__(f"{self.what}. {self.remedy}")


def ends_early(partition: int, position: int, end: int) -> LogReplacedError:
    """Error for a log that ends before the counted position."""
    return LogReplacedError(partition, f"ends at offset {end}, and was counted up to {position}")


def holds_another(partition: int, counted: LastRecord, found: LastRecord) -> LogReplacedError:
    """Error for a log that has another record than the one that was counted."""
    return LogReplacedError(
        partition,
        f"has a record of epoch {found.epoch}, appended at {found.append_ms}, at offset {found.offset}, and "
        f"counted was one of epoch {counted.epoch}, appended at {counted.append_ms}, at {counted.offset}",
    )


class RecordNotCountedError(Exception):
    """A record was not counted, or only in part: memory ran out, or there is a defect."""


def uncounted(partition: int, offset: int, error: Exception) -> str:
    """Message for an uncounted record. Keeping the error itself would keep ledger and record in memory."""
    if isinstance(error, MemoryError):
        return f"partition {partition}: not enough memory to count the record at offset {offset}"
    defect = place_of(error)
    return f"partition {partition}: counting the record at offset {offset} failed by a defect, {defect}"


def raise_if_cancelled() -> None:
    """Raise CancelledError if this task's cancellation was swallowed.

    A task group that unwinds from a failure swallows a cancellation (CPython before 3.13). The owner of a
    revoked partition would then reopen its ledger and fence the rightful owner.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def why(error: BaseException) -> str:
    """Why the ledger was lost, if by no outage, for people."""
    if isinstance(error, ProducerFenced):
        return "another worker or command has opened it"
    if isinstance(error, UnknownTopicOrPartitionError):
        return "a topic of this deployment is missing; deniable topics check says which"
    return str(error) or type(error).__name__
