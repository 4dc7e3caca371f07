"""One partition of `uploads`: its fold, and what is to be sent for its batches. Without Kafka or a clock."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from deniable.protocol import wire
from deniable.protocol.uploads.relay_position import Position
from deniable.relay.fold import Fold, RelayBatch, Start
from deniable.relay.keys import RelayKeys
from deniable.relay.recovery import Ends
from deniable.relay.service.errors import RelayError
from deniable.relay.service.outcomes import OutcomeRecord

LOG_APPEND_TIME = 1
HOUR_MILLISECONDS = 3_600_000


class UploadRecord(Protocol):
    """One record of `uploads`, as aiokafka returns it; time in unix milliseconds."""

    offset: int
    timestamp: int
    timestamp_type: int
    value: bytes | None


class Sendable(NamedTuple):
    """One record to send; `partition` is None for any, `timestamp_ms` None for the present."""

    topic: str
    value: bytes
    partition: int | None
    key: bytes | None = None
    timestamp_ms: int | None = None

    @property
    def place(self) -> tuple[str, int | None]:
        """Topic and partition."""
        return self.topic, self.partition


@dataclass(frozen=True)
class SealedBatch:
    """A batch, ready to send.

    Parameters
    ----------
    batch : that ended.
    position : to commit once all records are acknowledged.
    records : packs, and what became of its uploads.
    reports : in the packs.
    packs : number of them.
    """

    batch: RelayBatch
    position: Position
    records: list[Sendable]
    reports: int
    packs: int


class PartitionRelay:
    """Folds one partition.

    Parameters
    ----------
    partition : of `uploads`.
    keys : of the relays.
    start : where the fold begins.
    after : batches that end later are sent.
    topics : names of `reports` and `rejected-uploads`.
    report_partitions : of `reports`.
    """

    def __init__(
        self,
        partition: int,
        keys: RelayKeys,
        start: Start,
        after: int,
        topics: tuple[str, str],
        report_partitions: int,
    ) -> None:
        self.fold = Fold(partition, keys, start)
        self.after = after
        self._keys = keys
        self._ends = Ends(start)
        self._begin = start.offset
        self._reports, self._rejected = topics
        self._report_partitions = report_partitions

    @property
    def rewind(self) -> int:
        """Offset where a relay that took over now would begin to read."""
        return self._ends.first

    def take(self, records: Iterable[UploadRecord]) -> list[SealedBatch]:
        """Apply records in offset order; return the batches that they end and that are to be sent.

        Records before the fold's position were applied and are skipped.

        Raises
        ------
        RelayError if records have no log append time; ControlError like `Fold.apply`.
        """
        sealed = []
        for record in records:
            if record.offset < self.fold.position:
                continue
            if record.timestamp_type != LOG_APPEND_TIME:
                raise RelayError(
                    f"uploads partition {self.fold.partition}: offset {record.offset} has a time that its "
                    "sender chose; set message.timestamp.type=LogAppendTime on the topic, and begin again "
                    "with an empty one"
                )
            batch = self.fold.apply(record.offset, record.timestamp, record.value)
            if batch is None:
                continue
            position = self._ends.passed(batch, self.fold)
            if batch.end > self.after:
                sealed.append(self._seal(batch, position))
            self._begin = batch.end
        return sealed

    def _seal(self, batch: RelayBatch, position: Position) -> SealedBatch:
        packs = batch.packs(self._keys)
        number = self._report_partitions
        records = [
            Sendable(self._reports, wire.encode(pack), wire.partition_of(pack.pack_id, number))
            for pack in packs
        ]
        outcome = OutcomeRecord.of(self.fold.partition, self._begin, batch)
        if outcome is not None:
            # A batch may be a single upload: its time says when a device sent it.
            hour = batch.watermark_ms // HOUR_MILLISECONDS * HOUR_MILLISECONDS
            records.append(Sendable(self._rejected, outcome.encode(), None, outcome.key, hour))
        return SealedBatch(batch, position, records, sum(pack.reports for pack in packs), len(packs))
