"""The independent recount of the whole log from offset 0, by the documented rules alone.

Payloads are counted once all of a window and cohort are read, so numpy counts them in one step.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from kafka import KafkaConsumer, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.chaos.judging.judge import Cell, Judge, buckets_of, by_reason

SILENT_POLLS = 60  # of half a second each; then a log whose end was not reached is an error


@dataclass(frozen=True)
class Counted:
    """Counts of one window and cohort: int64 (width,), reports, packs."""

    counts: npt.NDArray[np.int64]
    reports: int
    packs: int


@dataclass
class Tallied:
    """Counts of some windows.

    Parameters
    ----------
    cells : by fingerprint, window start and cohort.
    rejected : number of rejected packs, by reason.
    """

    cells: dict[Cell, Counted] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass
class Recount(Tallied):
    """The content of the log.

    Parameters
    ----------
    ids : of counted packs.
    seen : ids of well-formed packs, whether counted or not.
    records : in the log, without control records.
    kept : counts without windows that have expired in their partition at the log's end.
    late : counts of packs that came too late and were not counted before.
    """

    ids: set[bytes] = field(default_factory=set)
    seen: set[bytes] = field(default_factory=set)
    records: int = 0
    kept: Tallied = field(default_factory=Tallied)
    late: dict[Cell, Counted] = field(default_factory=dict)


def recount(
    servers: str,
    topic: str,
    partitions: int,
    collections: Mapping[int, Collection],
    retired: Mapping[int, Mapping[int, int]] | None = None,
    stored_to: Mapping[int, int] | None = None,
) -> Recount:
    """Read the log to its end, uncommitted records included, and count it; see Judge for the last two.

    Raises
    ------
    RuntimeError if the end is not reached, or the log no longer begins at offset 0.
    """
    ended, stored = retired or {}, stored_to or {}
    judges = [
        Judge(collections, each, partitions, ended.get(each), stored.get(each)) for each in range(partitions)
    ]
    for partition, record in records_of(servers, topic, partitions):
        judges[partition].take(record.timestamp, record.value, record.offset)
    return add_up(judges, collections)


def records_of(servers: str, topic: str, partitions: int) -> Iterator[tuple[int, ConsumerRecord]]:
    """Read a log from offset 0 to its end, uncommitted records included; yield partitions and records.

    Raises
    ------
    RuntimeError like `recount`.
    """
    sources = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer = KafkaConsumer(
        bootstrap_servers=servers,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=4 << 20,
        max_poll_records=5000,
    )
    try:
        consumer.assign(sources)
        if any(consumer.beginning_offsets(sources).values()):
            raise RuntimeError(f"{topic} no longer begins at offset 0")
        ends, silent = consumer.end_offsets(sources), 0
        while any(consumer.position(source) < ends[source] for source in sources):
            batches = consumer.poll(timeout_ms=500)
            silent = 0 if batches else silent + 1
            if silent > SILENT_POLLS:
                raise RuntimeError(f"{topic} cannot be read to its end")
            for source, batch in batches.items():
                for record in batch:
                    yield source.partition, record
    finally:
        consumer.close()


def add_up(judges: Iterable[Judge], collections: Mapping[int, Collection]) -> Recount:
    """Return the sum over all partitions."""
    total = Recount()
    payloads: defaultdict[Cell, list[bytes]] = defaultdict(list)
    kept: defaultdict[Cell, list[bytes]] = defaultdict(list)
    late: defaultdict[Cell, list[bytes]] = defaultdict(list)
    for judge in judges:
        total.rejected += judge.rejected
        total.ids |= judge.ids
        total.seen |= judge.seen
        total.records += judge.records
        alive = {key: packs for key, packs in judge.refused.items() if not judge.is_dead(*key[:2])}
        total.kept.rejected += by_reason(alive)
        for cell, found in judge.payloads.items():
            payloads[cell] += found
            if not judge.is_dead(*cell[:2]):
                kept[cell] += found
        for pack_id, (cell, payload) in judge.late.items():
            if pack_id not in judge.ids and cell[0] in collections:
                late[cell].append(payload)
    total.cells = count_all(payloads, collections)
    total.kept.cells = count_all(kept, collections)
    total.late = count_all(late, collections)
    return total


def count_all(
    payloads: Mapping[Cell, list[bytes]], collections: Mapping[int, Collection]
) -> dict[Cell, Counted]:
    """Return the counts of payloads, by cell."""
    return {
        cell: _count(b"".join(found), len(found), collections[cell[0]]) for cell, found in payloads.items()
    }


def _count(data: bytes, packs: int, collection: Collection) -> Counted:
    width = collection.width
    if isinstance(collection.mechanism, KRR):
        buckets = buckets_of(data, width)
        return Counted(np.bincount(buckets, minlength=width), len(buckets), packs)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").reshape(-1, width)
    return Counted(bits.sum(axis=0, dtype=np.int64), len(bits), packs)
