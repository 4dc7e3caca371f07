"""Time to open a large ledger, and memory of a million pack ids."""

import asyncio
import os
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from bench.aggregator.deployments import RAPPOR_128, configure
from bench.sections import ResultRow, Section
from deniable.aggregator.deployment import Deployment
from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.pack_ids import MERGED_ROWS, PackIds
from deniable.aggregator.partition.ledger_checks import decoded, restored
from deniable.aggregator.partition.ledger_store import LedgerStore
from deniable.aggregator.topics.transaction_batches import Outgoing
from deniable.deploy.broker.broker import Broker
from deniable.deploy.cluster.deployment import deployment_of

COLLECTIONS = 100
COHORTS = 64
COUNT_ROWS = 10_000
STORED_IDS = (0, 100_000, 1_000_000, 4_000_000, 10_000_000)
EXPIRED_ROWS = 5 * 8640  # of a day of windows of 10 s, with 200 packs each
ADDED_IDS = (100_000, 1_000_000, 10_000_000)
ROWS_PER_TRANSACTION = 2000
ENTRY = RAPPOR_128.replace("budget:", f"window_packs: {max(STORED_IDS)}, budget:")


async def opening_seconds(deployment: Deployment, ids: int, expired: int = 0) -> tuple[float, float]:
    """Wall and processor time to open a ledger of COUNT_ROWS rows and ids, by the owner's own code.

    Parameters
    ----------
    deployment : with topics of its own.
    ids : stored pack ids.
    expired : rows of expired windows, whose tombstones remain.
    """
    await _store(deployment, ids, expired)
    store = LedgerStore(deployment.cluster, deployment.topics, 0)
    began, cpu_before = time.monotonic(), time.process_time()
    committed = await store.committed()
    stored = await asyncio.to_thread(decoded, deployment, 0, await store.open())
    ledger = await asyncio.to_thread(restored, deployment, 0, stored, committed)
    took = time.monotonic() - began, time.process_time() - cpu_before
    await store.close()
    if len(ledger.counts.tallies) != COUNT_ROWS or sum(map(len, ledger.ids.by_window.values())) != ids:
        raise click.ClickException("what was opened is not what was stored")
    return took


async def _store(deployment: Deployment, ids: int, expired: int) -> None:
    store = LedgerStore(deployment.cluster, deployment.topics, 0)
    committed = await store.committed()
    ledger = restored(deployment, 0, decoded(deployment, 0, await store.open()), committed)
    ledger.agree(deployment.collections, deployment.revision)
    state = deployment.topics.state
    await store.commit([Outgoing(state, 0, key, value) for key, value in ledger.drain().records()])
    records = [Outgoing(state, 0, row_keys.encode_key(key), value) for key, value in _large(deployment, ids)]
    gone = (row_keys.encode_key(row_keys.IdsKey(0, 0, number)) for number in range(expired))
    records += [Outgoing(state, 0, key, None) for key in gone]
    for first in range(0, len(records), ROWS_PER_TRANSACTION):
        await store.commit(records[first : first + ROWS_PER_TRANSACTION])
    await store.close()


def _large(deployment: Deployment, ids: int) -> Iterator[tuple[row_keys.Key, bytes]]:
    fingerprints = list(deployment.collections)
    collection = deployment.collections[fingerprints[0]]
    window = collection.window_start(time.time())
    counters = row_values.encode_counters(
        row_values.CounterPage(300, 1, np.arange(collection.width, dtype=np.int64))
    )
    for number in range(COUNT_ROWS):
        later, place = divmod(number, COLLECTIONS * COHORTS)
        cohort, which = divmod(place, COLLECTIONS)
        start = window + later * collection.window_seconds
        yield row_keys.CountKey(fingerprints[which], start, cohort, 0), counters
    for first in range(0, ids, MERGED_ROWS):  # the smallest rows that merging leaves
        stored = os.urandom(row_values.ID_BYTES * min(MERGED_ROWS, ids - first))
        yield row_keys.IdsKey(fingerprints[0], window, first), row_values.encode_ids(stored)


def ids_cost(added: int) -> ResultRow:
    """Memory of this many ids, added one by one, and the longest step."""
    tracemalloc.start()
    ids, longest = PackIds(), 0.0
    for _ in range(added):
        pack_id = os.urandom(row_values.ID_BYTES)
        began = time.perf_counter()
        ids.add(pack_id)
        longest = max(longest, time.perf_counter() - began)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {
        "ids": added,
        "memory, MiB": round(size / 2**20),
        "bytes an id": round(size / added, 1),
        "longest step, ms": round(1000 * longest, 1),
    }


def opening() -> Section:
    """Open ledgers with more and more ids, and one with the tombstones of a day."""
    rows: list[ResultRow] = []
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        for ids, expired in ((0, EXPIRED_ROWS), *((ids, 0) for ids in STORED_IDS)):
            configuration = configure(
                Path(name), broker.bootstrap_servers, f"bench-{ids}-{expired}-", COLLECTIONS, ENTRY
            )
            seconds, cpu = asyncio.run(opening_seconds(deployment_of(configuration), ids, expired))
            times = {"seconds": round(seconds, 2), "CPU seconds": round(cpu, 2)}
            rows.append({"ids": ids, "tombstones": expired, **times})
    return Section("Opening a ledger of 10,000 rows of 128 counters each.", rows)


CASES = {
    "opening": opening,
    "ids": lambda: Section(
        "Ids of packs, added one by one to one window.", [ids_cost(added) for added in ADDED_IDS]
    ),
}
