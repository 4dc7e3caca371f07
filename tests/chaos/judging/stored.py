"""Read the workers' results: ledgers of `state`, merged rows of `counts`, and final estimates.

Shares only the layout of rows with the product; rows are merged here.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from aiokafka import AIOKafkaConsumer, TopicPartition

from deniable.aggregator.ledger import row_keys, row_values
from deniable.protocol.topic_names import Topics
from tests.chaos.judging.judge import Cell
from tests.chaos.judging.recount import Counted

READ_SECONDS = 120.0


@dataclass
class Stored:
    """The newest row of each key of one topic.

    Parameters
    ----------
    cells, rejected : like those of Recount.
    positions : next offset to count by source partition, the lowest of all rows.
    records, offsets : records left by compaction, and offsets ever assigned.
    """

    cells: dict[Cell, Counted] = field(default_factory=dict)
    rejected: Counter[str] = field(default_factory=Counter)
    positions: dict[int, int] = field(default_factory=dict)
    records: int = 0
    offsets: int = 0


@dataclass(frozen=True)
class Final:
    """A window's first final estimate, which no later one may change.

    Parameters
    ----------
    reports, packs : that it is from.
    appended_ms : its append time, unix milliseconds.
    later : estimates of the window after it.
    """

    fingerprint: int
    window_start: int
    reports: int
    packs: int
    appended_ms: int
    later: int = 0


def ledgers(servers: str, topics: Topics) -> Stored:
    """Read `state`: the sum of all ledgers."""
    found, stored = _newest(servers, topics.state, topics.partitions)
    return _put_together(stored, ((row_keys.decode_key(key), home, value) for (home, key), value in found))


def counts(servers: str, topics: Topics) -> Stored:
    """Read `counts` like estimators, summed over all sources."""
    found, stored = _newest(servers, topics.counts, topics.partitions)
    return _put_together(stored, ((*row_keys.split_source(key), value) for (_, key), value in found))


def finals(servers: str, topics: Topics) -> list[Final]:
    """Read the first final estimate of every window, and count what follows it."""
    first: dict[tuple[int, int], Final] = {}
    for record in _records(servers, topics.estimates, topics.partitions, Stored()):
        estimate = json.loads(record.value)
        window = (int(estimate["fingerprint"], 16), estimate["window_start"])
        if window in first:
            first[window] = replace(first[window], later=first[window].later + 1)
        elif estimate["final"]:
            first[window] = Final(*window, estimate["reports"], estimate["packs"], record.timestamp)
    return list(first.values())


def refusals(servers: str, topics: Topics) -> Counter[str]:
    """Count the records of `rejected`, by reason."""
    records = _records(servers, topics.rejected, topics.partitions, Stored())
    return Counter(json.loads(record.value)["reason"] for record in records)


def _put_together(stored: Stored, found: Iterator[tuple[row_keys.Key, int, bytes]]) -> Stored:
    pages: defaultdict[tuple[Cell, int], dict[int, row_values.CounterPage]] = defaultdict(dict)
    for key, source, value in found:
        match key:
            case row_keys.CountKey():
                pages[key[:3], source][key.page] = row_values.decode_counters(value)
            case row_keys.RejectedKey():
                stored.rejected[key.reason] += row_values.decode_rejected(value)
            case row_keys.SingleKey.PROGRESS:
                position = row_values.decode_progress(value).position
                stored.positions[source] = min(position, stored.positions.get(source, position))
    for (cell, _), parts in pages.items():
        data = np.concatenate([parts[page].counts for page in sorted(parts)])
        before = stored.cells.get(cell, Counted(np.zeros_like(data), 0, 0))
        first = parts[min(parts)]
        size = max(len(data), len(before.counts))  # a missing page appears as a difference
        stored.cells[cell] = Counted(
            np.pad(data, (0, size - len(data))) + np.pad(before.counts, (0, size - len(before.counts))),
            before.reports + first.reports,
            before.packs + first.packs,
        )
    return stored


def _newest(
    servers: str, topic: str, partitions: int
) -> tuple[Iterator[tuple[tuple[int, bytes], bytes]], Stored]:
    stored = Stored()
    found: dict[tuple[int, bytes], bytes] = {}
    for record in _records(servers, topic, partitions, stored):
        key = (record.partition, record.key or b"")
        if record.value is None:
            found.pop(key, None)
        else:
            found[key] = record.value
    return iter(found.items()), stored


def _records(servers: str, topic: str, partitions: int, stored: Stored) -> list[Any]:
    """Yield the committed records; count them and the offsets."""
    return asyncio.run(_read(servers, topic, partitions, stored))


async def _read(servers: str, topic: str, partitions: int, stored: Stored) -> list[Any]:
    # Not with kafka-python, which fails at the marker of a transaction that compaction has emptied.
    sources = [TopicPartition(topic, partition) for partition in range(partitions)]
    consumer = AIOKafkaConsumer(
        bootstrap_servers=servers,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    records: list[Any] = []
    try:
        await consumer.start()
        consumer.assign(sources)
        ends = await consumer.end_offsets(sources)
        async with asyncio.timeout(READ_SECONDS):
            while any([await consumer.position(source) < ends[source] for source in sources]):
                for batch in (await consumer.getmany(timeout_ms=500)).values():
                    records += batch
    finally:
        await consumer.stop()
    stored.records, stored.offsets = len(records), sum(ends.values())
    return records
