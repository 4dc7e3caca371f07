"""Our jobs at given sizes; they run repeatedly, or once while their memory is traced."""

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from numpy.typing import NDArray

from bench.aggregator import candidates
from bench.comparison.runners.ours import deniable_runner, ledgers
from bench.estimators.populations import report_counts, round_to_counts, zipf_shares
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.ledger.counting.bit_counting import add_pack, is_countable
from deniable.aggregator.ledger.ledger import Ledger
from deniable.aggregator.partition import checkpoint
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection
from deniable.estimators.decoding import bloom as rappor_decode
from deniable.estimators.frequency import krr as krr_estimate
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.responders.factory import responder_of
from deniable.protocol import wire
from deniable.protocol.secrets.secret import NEW_SECRET_BYTES, Secret
from deniable.protocol.topic_names import Topics

LIBRARY = "deniable"

Once = Callable[[], object]
Values = NDArray[np.int64] | Sequence[str]

EPSILON = 2.0
REPORTS = 100_000
VALUES = 10_000
WORDS = 100
PACKS, PACK_REPORTS, PACK_COHORTS = 1_600, 100, 16  # a pack for each cohort of 100 collections


def randomize_values(size: int) -> Once:
    """Randomize and pack reports of this many values."""
    return deniable_runner.krr(REPORTS, size, EPSILON)


def count_values(size: int) -> Once:
    """Decode and count packs of reports of this many values."""
    return deniable_runner.count_krr(REPORTS, size, EPSILON)


def estimate_values(size: int) -> Once:
    """MLE* for this many values, with error bars and significance."""
    mechanism = KRR.from_epsilon(size, EPSILON)
    truth = round_to_counts(zipf_shares(size, 1.0), 10 * REPORTS)
    counts = report_counts(np.random.default_rng(1), truth, mechanism)
    return lambda: krr_estimate.estimate(counts, mechanism)


def krr_reports(size: int) -> Once:
    """Run k-RR on this many reports, from values to the estimate."""
    collection = Collection("values", KRR.from_epsilon(1000, EPSILON))
    values = np.random.default_rng(1).integers(1000, size=size)
    return lambda: _from_values_to_estimate(collection, values)


def rappor_reports(size: int) -> Once:
    """Run RAPPOR on this many reports, from texts to the estimate."""
    words = _words(WORDS)
    collection = Collection("values", _rappor(8), candidates=tuple(words))
    values = [words[number] for number in np.random.default_rng(1).integers(WORDS, size=size)]
    return lambda: _from_values_to_estimate(collection, values)


def count_cohorts(size: int) -> Once:
    """Count the same number of reports in a ledger, in packs of this many cohorts."""
    collection, each = Collection("values", _rappor(size)), REPORTS // size
    parts = [
        min(deniable_runner.PACK_REPORTS, each - first)
        for first in range(0, each, deniable_runner.PACK_REPORTS)
    ]
    records = [
        ledgers.record_of(collection, cohort, reports, size * number + cohort)
        for cohort in range(size)
        for number, reports in enumerate(parts)
    ]
    return lambda: ledgers.count(ledgers.opened([collection]), records)


def decode_cohorts(size: int) -> Once:
    """Estimate a window with this many cohorts."""
    return _decoding(_rappor(size), WORDS)


def decode_candidates(size: int) -> Once:
    """Estimate a window for this many candidates, whose bits are cached from the previous window."""
    return _decoding(_rappor(8), size)


def decode_new_candidates(size: int) -> Once:
    """Estimate a window for this many candidates, hashed again because one of them changes each time."""
    return _decoding(_rappor(8), size, new=True)


def count_collections(size: int) -> Once:
    """Count the same packs, spread over this many collections, in a ledger."""
    return _counting(size)


def store_collections(size: int) -> Once:
    """The same, and encode all changes as the records of one transaction."""
    counted, topics = _counting(size), Topics("bench-", 4)
    return lambda: checkpoint.compose(checkpoint.take(counted(), publishes=True), topics)


def merge_partitions(size: int) -> Once:
    """Read and merge the counts that this many ledgers published of a window."""
    collection = Collection("values", KRR.from_epsilon(VALUES, EPSILON))
    rows = ledgers.published(collection, size, REPORTS)
    return lambda: ledgers.merged(collection, rows)


def estimate_partitions(size: int) -> Once:
    """The same, and estimate the window."""
    collection = Collection("values", KRR.from_epsilon(VALUES, EPSILON))
    rows = ledgers.published(collection, size, REPORTS)
    return lambda: window_estimate.estimate(collection, ledgers.merged(collection, rows))


def _rappor(cohorts: int) -> Rappor:
    return Rappor.from_probabilities(bits=128, hashes=2, cohorts=cohorts, f=0.25, p=0.35, q=0.65)


def _words(count: int) -> list[str]:
    return [f"word-{number}" for number in range(count)]


def _counting(size: int) -> Callable[[], Ledger]:
    collections = [Collection(f"c{number}", _rappor(PACK_COHORTS)) for number in range(size)]
    records = ledgers.spread(collections, PACKS, PACK_REPORTS)
    return lambda: ledgers.count(ledgers.opened(collections), records)


def _decoding(mechanism: Rappor, size: int, new: bool = False) -> Once:
    words = _words(size)
    counts, sizes = candidates.window(words[:WORDS], mechanism, np.random.default_rng(1))
    numbers = count()

    def once() -> None:
        if new:
            words[-1] = f"another-{next(numbers)}"
        rappor_decode.decode(counts, sizes, words, mechanism)

    return once


def _from_values_to_estimate(collection: Collection, values: Values) -> None:
    """Like a producer and a worker without Kafka in between: each pack is freed once counted."""
    counts = np.zeros((collection.cohorts, collection.width), np.int64)
    sizes = np.zeros(collection.cohorts, np.int64)
    keystream = Keystream()
    responder = responder_of(collection, Secret(bytes(NEW_SECRET_BYTES)), keystream)
    for record in deniable_runner.packed(collection, responder, keystream, [values], None):
        pack = wire.decode(record)
        if is_countable(pack):
            add_pack(counts[pack.cohort], pack)
            sizes[pack.cohort] += pack.reports
    window_estimate.estimate(collection, WindowCounts(counts, sizes, packs=0, rejected=0))


def peak_bytes(once: Once) -> int:
    """Peak memory of Python and NumPy for a job, without its input."""
    gc.collect()
    tracemalloc.start()
    try:
        once()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _job(prepare: Callable[[int], Once]) -> Callable[..., Callable[[], object]]:
    def prepared(count: int, size: int, traced: bool = False) -> Callable[[], object]:
        once = prepare(size)

        def run() -> object:
            if traced:
                return peak_bytes(once)
            for _ in range(count):
                once()
            return None

        return run

    return prepared


JOBS = {
    "randomize values": _job(randomize_values),
    "count values": _job(count_values),
    "estimate values": _job(estimate_values),
    "k-RR reports": _job(krr_reports),
    "RAPPOR reports": _job(rappor_reports),
    "count cohorts": _job(count_cohorts),
    "decode cohorts": _job(decode_cohorts),
    "decode candidates": _job(decode_candidates),
    "decode new candidates": _job(decode_new_candidates),
    "count collections": _job(count_collections),
    "store collections": _job(store_collections),
    "merge partitions": _job(merge_partitions),
    "estimate partitions": _job(estimate_partitions),
}
