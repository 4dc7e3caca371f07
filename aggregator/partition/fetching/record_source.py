"""Where owners of partitions get their records from."""

from typing import Protocol

from deniable.aggregator.partition.fetching.last_record import LastRecord
from deniable.aggregator.partition.fetching.offset_chain import OffsetChain


class RecordSource(Protocol):
    """The consumer, as its owners use it."""

    async def rewind(self, partition: int, position: int, last: LastRecord | None = None) -> None:
        """Fetch again from this offset, in a new chain; RecordsLostError if the log starts after it.

        Fetch from the last counted record, if it is known and still there, so that the log proves itself.
        """

    async def end_offset(self, partition: int) -> int:
        """End of the log, including uncommitted records: one broker's belief, proof of nothing."""

    def chain(self, partition: int) -> OffsetChain | None:
        """Offsets fetched since the last rewind; None if another rewind is needed."""
