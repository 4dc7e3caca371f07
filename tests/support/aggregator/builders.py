"""Two small collections, packs for them, and topics in memory."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import msgspec
import numpy as np
import numpy.typing as npt
from aiokafka import TopicPartition

from deniable.aggregator.deployment import Deployment
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.estimation.estimator import Estimator
from deniable.aggregator.estimation.lost_windows import LostWindows
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.counting.bit_counting import add_pack
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.outcomes import Headers
from deniable.aggregator.ledger.row_keys import Stored, Window
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.ledger.terms import terms_of
from deniable.aggregator.metrics.worker_metrics import WorkerMetrics
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.cluster.cluster import Cluster
from deniable.cluster.reading.partition_reader import KafkaRecord, RowReader
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.protocol import wire
from deniable.protocol.topic_names import Topics

T0 = 1_767_225_600  # a window start, unix seconds
PARTITIONS = 4
RELAYS_KEY = bytes(range(16))
TOPICS = Topics("test-", PARTITIONS)
CHANNEL = Rappor.from_probabilities(16, 2, 3, 0.25, 0.35, 0.65)
FRUIT = Collection(
    name="fruit",
    mechanism=KRR.from_epsilon(4, 2.0),
    values=("apple", "fig", "kiwi"),
    other=True,
    window_seconds=10,
    grace_seconds=5,
    retention_seconds=20,
    minimum_reports=6,
)
PLACE = Collection(
    name="place",
    mechanism=CHANNEL,
    candidates=("LAX", "SFO", "JFK"),
    memoize=True,
    window_seconds=10,
    grace_seconds=5,
    retention_seconds=20,
    minimum_reports=6,
)
COLLECTIONS = {collection.fingerprint: collection for collection in (FRUIT, PLACE)}
TERMS = {fingerprint: terms_of(collection) for fingerprint, collection in COLLECTIONS.items()}
LOG = row_values.Genesis(bytes(range(16)), PARTITIONS)
#: For tests that reach no broker: nothing listens there.
NOWHERE = Cluster("127.0.0.1:9")
DEPLOYMENT = Deployment(NOWHERE, TOPICS, LOG, COLLECTIONS, 1)
GENESIS = (row_keys.encode_key(row_keys.SingleKey.GENESIS), row_values.encode_genesis(LOG))


def pack_of(
    collection: Collection = FRUIT,
    window_start: int = T0,
    number: int = 0,
    reports: Sequence[int] = (0, 1, 3),
    cohort: int = 0,
    partition: int = 0,
) -> wire.Pack:
    """Build a pack whose id is derived from `number` and belongs to `partition`. RAPPOR rows are integers."""
    krr = isinstance(collection.mechanism, KRR | LocalHash)
    dtype = wire.bucket_dtype(collection.width) if krr else np.dtype(f"<u{collection.width // 8}")
    low = number * PARTITIONS + partition
    return wire.Pack(
        mechanism=collection.mechanism.wire_number,
        cohort=cohort,
        fingerprint=collection.fingerprint,
        window_start=window_start,
        reports=len(reports),
        width=collection.width,
        pack_id=low.to_bytes(8, "little") + bytes(8),
        payload=np.array(reports, dtype).tobytes(),
    )


def record_of(
    collection: Collection = FRUIT,
    window_start: int = T0,
    number: int = 0,
    reports: Sequence[int] = (0, 1, 3),
    cohort: int = 0,
    partition: int = 0,
) -> bytes:
    """Build the Kafka record of a pack of `pack_of`."""
    return wire.encode(pack_of(collection, window_start, number, reports, cohort, partition))


@dataclass(frozen=True)
class LogRecord:
    """A record as a Kafka client returns it."""

    offset: int
    timestamp: int
    value: bytes | None
    headers: Headers = ()


def run_of(offset: int, append_ms: int, record: bytes | None, headers: Headers = ()) -> Run:
    """A run of one record."""
    return Run.of([LogRecord(offset, append_ms, record, headers)])


def new_ledger(partition: int = 0) -> Ledger:
    """Open an empty ledger with the two collections."""
    ledger = Ledger(partition, PARTITIONS)
    ledger.agree(COLLECTIONS, 1)
    return ledger


def waiting_ledger(rows: Sequence[Stored] = ()) -> Ledger:
    """Open a ledger with these rows; an empty one heeds relays' markers with RELAYS_KEY."""
    ledger = new_ledger()
    ledger.restore(rows)
    if not rows:
        ledger.expect_relays(RELAYS_KEY)
    return ledger


def counts_of(collection: Collection, reports: Sequence[int]) -> npt.NDArray[np.int64]:
    """Return the counts of one pack, int64 (width,)."""
    counts = np.zeros(collection.width, np.int64)
    add_pack(counts, pack_of(collection, reports=reports))
    return counts


def estimate_of(collection: Collection = FRUIT) -> EstimateRecord:
    """Build a provisional estimate from 40 reports of each cohort."""
    counts = counts_of(collection, [0, 1, 1, 2] * 10)[None].repeat(collection.cohorts, axis=0)
    window = WindowCounts(counts, counts[:, 0] * 0 + 40, packs=1, rejected=0)
    result = window_estimate.estimate(collection, window)
    return window_estimate.record_of(collection, T0, window, result, final=False)


def changed(record: EstimateRecord, **fields: object) -> EstimateRecord:
    """Return a record with other fields."""
    if len(fields.get("values", record.values)) != len(record.values):  # type: ignore[arg-type]
        fields = {"low_all": [], "high_all": [], "unbiased": []} | fields
    return msgspec.structs.replace(record, **fields)


def ids_of(ledger: Ledger) -> dict[tuple[int, int], set[bytes]]:
    return {window: set(ids) for window, ids in ledger.ids.by_window.items()}


def tallies_of(ledger: Ledger) -> dict[tuple[int, int, int], tuple[list[int], int, int]]:
    """Return counts, reports and packs by fingerprint, window and cohort."""
    return {
        key: (tally.counts.tolist(), tally.reports, tally.packs)
        for key, tally in ledger.counts.tallies.items()
    }


def new_estimator(published: Mapping[Window, row_values.Published] | None = None) -> Estimator:
    """Build an estimator that has the terms of all partitions."""
    metrics = WorkerMetrics(COLLECTIONS)
    estimator = Estimator(
        COLLECTIONS, PARTITIONS, published or {}, LostWindows(metrics), metrics, longest_rest_seconds=0.0
    )
    for source in range(PARTITIONS):
        for key, value in terms_rows(source):
            estimator.take(key, value)
    return estimator


def terms_rows(source: int) -> list[tuple[bytes, bytes]]:
    """Return the rows of `counts` with the terms of one partition."""
    return [
        (
            row_keys.with_source(row_keys.encode_key(row_keys.TermsKey(name)), source),
            row_values.encode_terms(terms),
        )
        for name, terms in TERMS.items()
    ]


def estimate_due(estimator: Estimator) -> None:
    """Run the periodic task once."""
    asyncio.run(estimator._estimate_due())


def progress_row(position: int = 0, watermark_ms: int = 0) -> bytes:
    return row_values.encode_progress(row_values.LedgerProgress(position, watermark_ms, watermark_ms))


@dataclass
class MemoryRecord:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class MemoryLog:
    """Topics in memory."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], list[KafkaRecord]] = {}
        self._ends: dict[tuple[str, int], int] = {}  # of emptied partitions

    def partition(self, topic: str, partition: int) -> list[KafkaRecord]:
        return self._partitions.setdefault((topic, partition), [])

    def empty(self, topic: str, partition: int) -> None:
        """Delete all records, as retention does."""
        self._ends[topic, partition] = self.partition(topic, partition)[-1].offset + 1
        self.partition(topic, partition).clear()

    def append(
        self, topic: str, partition: int, value: bytes | None, key: bytes | None = None, append_ms: int = 0
    ) -> int:
        """Add a record; return its offset."""
        records = self.partition(topic, partition)
        offset = records[-1].offset + 1 if records else 0
        records.append(MemoryRecord(offset, append_ms, key, value))
        return offset

    def extend(self, records: Iterable[Outgoing], append_ms: int = 0) -> None:
        for topic, partition, key, value in records:
            self.append(topic, partition, value, key, append_ms)

    def reader(
        self, _: Cluster, topic: str, partition: int, *, committed: bool = True, follows: bool = False
    ) -> "MemoryReader":
        """Replacement for the class RowReader."""
        return MemoryReader(self.partition(topic, partition), self._ends.get((topic, partition), 0))

    async def since(
        self, _: Cluster, topic: str, partitions: Iterable[int], unix_ms: int
    ) -> AsyncGenerator[tuple[int, KafkaRecord], None]:
        """Replacement for `records_since`: records of the partitions in turn, as from several brokers."""
        found = [[r for r in self.partition(topic, p) if r.timestamp >= unix_ms] for p in partitions]
        for turn in zip_longest(*found):
            for partition, record in enumerate(turn):
                if record is not None:
                    yield partition, record


class MemoryReader(RowReader):
    def __init__(self, records: list[KafkaRecord], end: int = 0) -> None:
        self._emptied = end
        self.topic_partition = TopicPartition("memory", 0)
        self._records = records
        self._next = 0

    async def start(self) -> None:
        self._next = await self.start_offset()

    async def stop(self) -> None:
        pass

    async def start_offset(self) -> int:
        return self._records[0].offset if self._records else self._emptied

    async def end_offset(self) -> int:
        return self._records[-1].offset + 1 if self._records else self._emptied

    async def position(self) -> int:
        return self._next

    def ask_for_leaders(self) -> None:
        pass

    def seek(self, offset: int) -> None:
        self._next = offset

    async def poll(self, milliseconds: int = 0) -> list[KafkaRecord]:
        await asyncio.sleep(0 if self._next < await self.end_offset() else min(milliseconds, 10) / 1000)
        batch = [record for record in self._records if record.offset >= self._next]
        self._next = await self.end_offset()
        return batch
