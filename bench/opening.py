"""How long a large ledger takes to open, and what ten million pack ids take.

python -m bench.opening
"""

import asyncio
import os
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

from aggregator import row_keys, rows
from aggregator.deployment import Deployment
from aggregator.ledger_store import LedgerStore, Outgoing
from aggregator.opening import decoded, restored
from aggregator.pack_ids import PackIds
from aggregator.window_ids import MERGED_ROWS
from bench.deployments import configure
from deploy.broker import Broker
from deploy.deployment import deployment_of

COLLECTIONS = 100
COHORTS = 64
COUNT_ROWS = 10_000
STORED_IDS = 1_000_000
MOST_IDS = 10_000_000
ROWS_PER_TRANSACTION = 2000


async def opening_seconds(deployment: Deployment) -> float:
    """Time to open a ledger of COUNT_ROWS rows and STORED_IDS ids, by the owner's own code."""
    await _store(deployment)
    store = LedgerStore(deployment.bootstrap_servers, deployment.topics, 0)
    began = time.monotonic()
    committed = await store.committed()
    stored = await asyncio.to_thread(decoded, deployment, 0, await store.open())
    ledger = await asyncio.to_thread(restored, deployment, 0, stored, committed)
    took = time.monotonic() - began
    await store.close()
    if len(ledger.counts.tallies) != COUNT_ROWS or sum(map(len, ledger.ids.by_window.values())) != STORED_IDS:
        raise click.ClickException("what was opened is not what was stored")
    return took


async def _store(deployment: Deployment) -> None:
    store = LedgerStore(deployment.bootstrap_servers, deployment.topics, 0)
    committed = await store.committed()
    ledger = restored(deployment, 0, decoded(deployment, 0, await store.open()), committed)
    ledger.agree(deployment.collections, deployment.revision)
    state = deployment.topics.state
    await store.commit([Outgoing(state, 0, key, value) for key, value in ledger.drain().records()])
    records = [Outgoing(state, 0, row_keys.encode_key(key), value) for key, value in _large(deployment)]
    for first in range(0, len(records), ROWS_PER_TRANSACTION):
        await store.commit(records[first : first + ROWS_PER_TRANSACTION])
    await store.close()


def _large(deployment: Deployment) -> Iterator[tuple[row_keys.Key, bytes]]:
    fingerprints = list(deployment.collections)
    collection = deployment.collections[fingerprints[0]]
    window = collection.window_start(time.time())
    counters = rows.encode_counters(rows.Counters(300, 1, np.arange(collection.width, dtype=np.int64)))
    for number in range(COUNT_ROWS):
        later, place = divmod(number, COLLECTIONS * COHORTS)
        cohort, which = divmod(place, COLLECTIONS)
        start = window + later * collection.window_seconds
        yield row_keys.CountKey(fingerprints[which], start, cohort, 0), counters
    for first in range(0, STORED_IDS, MERGED_ROWS):  # the smallest rows that merging leaves
        ids = os.urandom(rows.ID_BYTES * min(MERGED_ROWS, STORED_IDS - first))
        yield row_keys.IdsKey(fingerprints[0], window, first), rows.encode_ids(ids)


def ids_cost() -> tuple[float, float]:
    """MiB that MOST_IDS take, added one by one, and the longest step, seconds."""
    tracemalloc.start()
    ids, longest = PackIds(), 0.0
    for _ in range(MOST_IDS):
        pack_id = os.urandom(rows.ID_BYTES)
        began = time.perf_counter()
        ids.add(pack_id)
        longest = max(longest, time.perf_counter() - began)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return size / 2**20, longest


@click.command()
def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name, Broker() as broker:
        configuration = configure(Path(name), broker.bootstrap_servers, "bench-", COLLECTIONS)
        took = asyncio.run(opening_seconds(deployment_of(configuration)))
    click.echo(f"{COUNT_ROWS:,} rows and {STORED_IDS:,} ids open within {took:.2f} s")
    size, longest = ids_cost()
    click.echo(f"{MOST_IDS:,} ids take {size:.0f} MiB; the longest step takes {1000 * longest:.0f} ms")


if __name__ == "__main__":
    main()
