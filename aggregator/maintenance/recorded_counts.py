"""What a lost ledger left in `counts`: terms, which a rebuild takes over, and rows, which it withdraws."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.terms import Terms
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.reading.partition_reader import RowReader


@dataclass(frozen=True)
class RecordedCounts:
    """Rows of one source partition.

    Parameters
    ----------
    source : the partition of `reports`.
    terms : by fingerprint.
    keys : of its counts, by partition of `counts`; their values are not kept.
    """

    source: int
    terms: dict[int, Terms] = field(default_factory=dict)
    keys: set[tuple[int, bytes]] = field(default_factory=set)

    def apply(self, home: int, data: bytes, value: bytes | None) -> None:
        """Apply one of its records; RowError if terms cannot be read."""
        row, _ = row_keys.split_source(data)
        match row:
            case row_keys.TermsKey():
                if value is not None:
                    self.terms[row.fingerprint] = row_values.decode_terms(value)
            case row_keys.CountKey() | row_keys.RejectedKey():
                (self.keys.discard if value is None else self.keys.add)((home, data))

    def withdrawn(self, deployment: Deployment, position: int) -> Iterator[Outgoing]:
        """Records that delete its counts, and set its progress back to a position."""
        counts = deployment.topics.counts
        key = row_keys.with_source(row_keys.encode_key(row_keys.SingleKey.PROGRESS), self.source)
        begun = row_values.encode_progress(row_values.LedgerProgress(position))
        for home in range(deployment.topics.partitions):
            yield Outgoing(counts, home, key, begun)
        for home, data in sorted(self.keys):
            yield Outgoing(counts, home, data, None)


async def recorded_counts(deployment: Deployment, sources: Iterable[int]) -> dict[int, RecordedCounts]:
    """Read `counts` once for these source partitions.

    Raises
    ------
    RowError if the newest row of a key of theirs cannot be read; KafkaError; TimeoutError.
    """
    found = {source: RecordedCounts(source) for source in sources}
    topics = deployment.topics
    for home in range(topics.partitions):
        unreadable: dict[bytes, row_values.RowError] = {}  # by key, until a later row supersedes it
        async with RowReader(deployment.cluster, topics.counts, home) as reader:
            async for record in reader.until_end():
                data = record.key or b""
                if row_keys.is_foreign(data, topics.partitions):
                    continue
                _, source = row_keys.split_source(data)
                unreadable.pop(data, None)
                try:
                    if source in found:
                        found[source].apply(home, data, record.value)
                except row_values.RowError as error:
                    place = f"offset {record.offset} of partition {home} of {topics.counts}"
                    unreadable[data] = _with_place(error, place)
        for newest in unreadable.values():
            raise newest
    return found


def _with_place(error: row_values.RowError, place: str) -> row_values.RowError:
    named = row_values.RowError(
        f"{place}: {error}. To count under the terms of the collection file instead, delete that topic and "
        f"run deniable topics create"
    )
    named.__cause__ = error
    return named
