"""A worker's own work on packs that a fetch has brought: read, check, look up, count."""

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from struct import pack_into
from typing import NamedTuple

import click
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition

from bench.aggregator.deployments import payload_of
from bench.aggregator.packs import packs_of
from bench.sections import ResultRow, Section
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.outcomes import PackOutcomes
from deniable.aggregator.ledger.runs.run import Run
from deniable.aggregator.partition.faust_app import COUNTED_RECORDS, FETCH_BYTES
from deniable.aggregator.partition.fetching.freed_memory import keep_freed_memory
from deniable.aggregator.partition.fetching.run_fetching import PartitionRuns
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.transport.connection import BATCH_BYTES

ABOUT = """\
A worker's own work on packs that a fetch has brought, without Kafka and transactions: what every pack
costs. Processor time of one core, so that other load on the machine changes it little. `one by one` is
`Ledger.apply`, which also takes whatever is rejected."""
ROUNDS = 7
BYTES = 16 * 2**20  # of records in a case
MOST_PACKS = 100_000
ONE_BY_ONE = 2000  # packs, at most
SOURCE = TopicPartition("reports", 0)
MAGIC_2 = 2
WINDOW = 1_767_225_600  # its start, unix seconds


class MemoryCase(NamedTuple):
    """Packs of this many reports, spread over collections with this mechanism and over their cohorts."""

    name: str
    mechanism: Mechanism
    reports: int
    collections: int = 1


BLOOM = Rappor.from_probabilities(128, 2, 64, 0.25, 0.35, 0.65)
KRR_1000 = KRR.from_epsilon(1000, 2.0)
PACKS = (
    *(MemoryCase("RAPPOR, 128 bits", BLOOM, reports) for reports in (1, 10, 100, 1000, 10_000)),
    MemoryCase("RAPPOR, 128 bits", BLOOM, 1, 100),
    MemoryCase("RAPPOR, 128 bits", BLOOM, 1000, 100),
    *(MemoryCase("k-RR, 1000 values", KRR_1000, reports) for reports in (1, 1000)),
)


def opened(collections: Sequence[Collection]) -> Ledger:
    """An empty ledger of the only partition."""
    ledger = Ledger(0, 1)
    ledger.agree({each.fingerprint: each for each in collections}, 1)
    return ledger


def fetches_of(records: Sequence[bytes]) -> list[bytes]:
    """What fetches of a partition bring: batches as our producers fill them, at most FETCH_BYTES of them."""
    fetches, offset = [b""], 0
    while offset < len(records):
        builder = DefaultRecordBatchBuilder(MAGIC_2, 0, 0, -1, -1, 0, BATCH_BYTES)
        number = 0
        while offset + number < len(records):
            record = records[offset + number]
            if builder.append(number, WINDOW * 1000 + number // 20, None, record, []) is None:
                break
            number += 1
        batch = builder.build()
        pack_into(">q", batch, 0, offset)
        offset += number
        if len(fetches[-1]) + len(batch) > FETCH_BYTES:
            fetches.append(b"")
        fetches[-1] += bytes(batch)
    return fetches


def runs_of(fetches: Sequence[bytes]) -> Iterator[Run]:
    """Read fetches into the runs that a ledger counts at once."""
    for fetch in fetches:
        for run in PartitionRuns(SOURCE, fetch, 0):
            for first in range(0, len(run), COUNTED_RECORDS):
                yield run.part(first, first + COUNTED_RECORDS)


def cpu_seconds(work: Callable[[], object]) -> float:
    """Processor time of one round of work, the median of all."""
    took = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return median(took)


def measure(case: MemoryCase) -> ResultRow:
    """Count packs of a case in both ways; all must count."""
    collections = [Collection(f"c{number}", case.mechanism) for number in range(case.collections)]
    packs = min(MOST_PACKS, BYTES // (16 * case.reports))
    payload = payload_of(collections[0], case.reports)
    records = packs_of(collections, range(packs), payload, case.reports, WINDOW)
    fetches = fetches_of(records)
    runs = list(runs_of(fetches))

    def count() -> Ledger:
        ledger, outcomes = opened(collections), PackOutcomes()
        for run in runs:
            outcomes.count_run(ledger.apply_run(run))
        if outcomes.packs != packs:
            raise click.ClickException(f"{outcomes.packs} of {packs} packs counted")
        return ledger

    def count_one_by_one() -> None:
        ledger, outcomes = opened(collections), PackOutcomes()
        for offset, record in enumerate(records[:ONE_BY_ONE]):
            if outcome := ledger.apply(offset, WINDOW * 1000, record):
                outcomes.count_outcome(outcome)

    counted, single = cpu_seconds(count) / packs, cpu_seconds(count_one_by_one) / min(packs, ONE_BY_ONE)
    return {
        "mechanism": case.name,
        "reports a pack": case.reports,
        "collections": case.collections,
        "packs a CPU second": round(1 / counted),
        "reports a CPU second": round(case.reports / counted),
        "ns a pack": round(1e9 * counted),
        "ns a pack, reading the fetch": round(1e9 * cpu_seconds(lambda: list(runs_of(fetches))) / packs),
        "ns a pack, one by one": round(1e9 * single),
    }


def in_memory() -> Section:
    """Measure all kinds of packs."""
    keep_freed_memory()
    return Section(ABOUT, [measure(case) for case in PACKS])


CASES = {"in memory": in_memory}
