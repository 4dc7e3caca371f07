"""Our producer and worker with a stopwatch: nanoseconds per report in each stage."""

import time
from collections.abc import Callable, Sequence

from bench.comparison.runners.ours import deniable_runner, ledgers
from bench.comparison.timing.stopwatch import Stage, Stopwatch
from deniable.aggregator.ledger import ledger as ledger_module
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.ledger.pack_ids import WindowIds
from deniable.aggregator.ledger.runs import good_packs, pack_columns, tally_groups
from deniable.aggregator.partition import checkpoint
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.pipeline import packer
from deniable.producers.pipeline.packer import Packer
from deniable.producers.randomization.permanent_responses import Memory, RepeatedWords
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.responders import buckets
from deniable.producers.responders import krr as krr_responder
from deniable.producers.responders import rappor as rappor_responder
from deniable.producers.responders.buckets import Buckets
from deniable.protocol import wire
from deniable.protocol.topic_names import Topics

LIBRARY = "deniable"

VALUES, EPSILON = 10_000, 2.0
BITS, HASHES, COHORTS, WORDS = 128, 2, 8, 100
F, P, Q = 0.5, 0.5, 0.75
REST = "all else"

WORKER = (
    Stage("checksums", pack_columns, "_checksums"),
    Stage("reading headers", good_packs, "decoded"),
    Stage("acceptance", ledger_module, "packs_of"),
    Stage("looking for duplicates", ledger_module, "good_packs"),
    Stage("looking for duplicates", WindowIds, "add_many"),
    Stage("grouping by window and cohort", tally_groups, "_grouped"),
    Stage("counting", ledger_module, "add"),
    Stage("bookkeeping of the ledger", Ledger, "apply_run"),
    Stage("rows of a checkpoint", checkpoint, "take"),
    Stage("rows of a checkpoint", checkpoint, "compose"),
)
PRODUCER = (
    Stage("type checks", buckets, "integers"),
    Stage("type checks", rappor_responder, "clients_of"),
    Stage("checking texts and finding equal ones", rappor_responder, "different_texts"),
    Stage("looking up buckets", Buckets, "find"),
    Stage("looking up buckets", Buckets, "settle"),
    Stage("looking up buckets", Buckets, "place"),
    Stage("Bloom filters", rappor_responder, "numbered_rows"),
    Stage("cohorts", Memory, "cohorts"),
    Stage("digests of clients and values", Memory, "digest"),
    Stage("words of the memory", Memory, "words"),
    Stage("words of the memory", RepeatedWords, "words64"),
    Stage("the keystream", Keystream, "words64"),
    Stage("randomizing", krr_responder, "randomize_krr"),
    Stage("randomizing", rappor_responder, "permanent"),
    Stage("randomizing", rappor_responder, "instantaneous"),
    Stage("grouping into packs", Packer, "add"),
    Stage("grouping into packs", Packer, "flush"),
    Stage("shuffling", packer, "seal"),
    Stage("checksums", wire, "crc32c"),
    Stage("writing records", wire, "encode"),
)


def _worker(collection: Collection, count: int, pack_reports: int) -> Callable[[], object]:
    """From records to counts, with a checkpoint when all are counted."""
    records = ledgers.spread([collection], count // pack_reports, pack_reports)
    runs = ledgers.runs(records)
    topics = Topics("bench-", 4)

    def once() -> None:
        ledger = ledgers.opened([collection])
        for run in runs:
            ledger.apply_run(run)
        checkpoint.compose(checkpoint.take(ledger, publishes=True), topics)

    return _watched(once, WORKER, count)


def _watched(once: Callable[[], object], stages: Sequence[Stage], count: int) -> Callable[[], object]:
    """Nanoseconds per report: in total without the stopwatch, and by stage with it."""

    def run() -> object:
        began = time.perf_counter_ns()
        once()
        unwatched = time.perf_counter_ns() - began
        watch = Stopwatch()
        with watch.watching(stages), watch.stage(REST):
            once()
        found = {name: nanoseconds / count for name, nanoseconds in watch.nanoseconds.items()}
        return {"unwatched": unwatched / count, "stages": found}

    return run


def worker_krr(count: int) -> Callable[[], object]:
    """Packs of k-RR."""
    collection = Collection("values", KRR.from_epsilon(VALUES, EPSILON))
    return _worker(collection, count, deniable_runner.PACK_REPORTS)


def worker_rappor(count: int, pack_reports: int = deniable_runner.PACK_REPORTS) -> Callable[[], object]:
    """Packs of RAPPOR."""
    collection = Collection("values", Rappor.from_probabilities(BITS, HASHES, COHORTS, F, P, Q))
    return _worker(collection, count, pack_reports)


def producer_krr(count: int) -> Callable[[], object]:
    """From integers to records."""
    return _watched(deniable_runner.krr(count, VALUES, EPSILON), PRODUCER, count)


def producer_rappor(count: int, memoize: bool = False) -> Callable[[], object]:
    """From texts to records; `memoize`: each report comes from another client."""
    once = deniable_runner.rappor(count, BITS, HASHES, COHORTS, WORDS, F, P, Q, memoize)
    return _watched(once, PRODUCER, count)


JOBS = {
    "producer k-RR": producer_krr,
    "producer RAPPOR": producer_rappor,
    "worker k-RR": worker_krr,
    "worker RAPPOR": worker_rappor,
}
