"""Our own jobs: from values to encoded packs, and from encoded packs to counts."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from deniable.aggregator.ledger.counting.bit_counting import add_pack, is_countable
from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.hashing.longitudinal_hash import LongitudinalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from deniable.producers.pipeline.packer import Packer
from deniable.producers.randomization.randomness import Keystream
from deniable.producers.responders.batch import Responder, parts
from deniable.producers.responders.factory import responder_of
from deniable.protocol import wire
from deniable.protocol.secrets.secret import NEW_SECRET_BYTES, Secret

LIBRARY = "deniable"
PACK_REPORTS = 10_000


def krr(count: int, k: int, epsilon: float, batch: int | None = None) -> Callable[[], object]:
    """Randomize this many integers and pack the reports, in batches or all at once."""
    collection = Collection("values", KRR.from_epsilon(k, epsilon))
    values = np.random.default_rng(1).integers(k, size=count)
    return _packing(collection, [values[cut] for cut in _cuts(count, batch)], None)


def rappor(
    count: int,
    bits: int,
    hashes: int,
    cohorts: int,
    words: int,
    f: float,
    p: float,
    q: float,
    memoize: bool,
    batch: int | None = None,
) -> Callable[[], object]:
    """Run Bloom filters and both steps on this many texts, each of another client, and pack the reports."""
    mechanism = Rappor.from_probabilities(bits, hashes, cohorts, f, p, q)
    collection = Collection("values", mechanism, memoize=memoize)
    values = [f"word {number}" for number in np.random.default_rng(1).integers(words, size=count)]
    cuts = _cuts(count, batch)
    clients = [[f"client-{number}" for number in range(count)[cut]] for cut in cuts] if memoize else None
    return _packing(collection, [values[cut] for cut in cuts], clients)


def local_hash(count: int, epsilon: float, words: int, batch: int | None = None) -> Callable[[], object]:
    """Hash and randomize this many texts by functions drawn anew, and pack the reports."""
    collection = Collection("values", LocalHash.from_epsilon(epsilon))
    values = [f"word {number}" for number in np.random.default_rng(1).integers(words, size=count)]
    return _packing(collection, [values[cut] for cut in _cuts(count, batch)], None)


def longitudinal_hash(
    count: int, epsilon_inf: float, epsilon_one: float, words: int, remembered: bool
) -> Callable[[], object]:
    """Hash and randomize this many texts twice by functions of clients, and pack the reports.

    `remembered`: each is of another client, whose permanent response is derived.
    """
    collection = Collection("values", LongitudinalHash.from_epsilons(epsilon_inf, epsilon_one), memoize=True)
    values = [f"word {number}" for number in np.random.default_rng(1).integers(words, size=count)]
    clients = [[f"client-{number}" for number in range(count)]] if remembered else None
    return _packing(collection, [values], clients)


def number(count: int, epsilon: float, steps: int, batch: int | None = None) -> Callable[[], object]:
    """Find the steps of this many numbers, randomize them by the Square Wave, and pack the reports."""
    collection = Collection("values", SquareWave.from_epsilon(0.0, 100.0, steps, epsilon))
    values = 100 * np.random.default_rng(1).random(count)
    return _packing(collection, [values[cut] for cut in _cuts(count, batch)], None)


def _cuts(count: int, batch: int | None) -> list[slice]:
    size = batch or count
    return [slice(start, start + size) for start in range(0, count, size)]


def _packing(
    collection: Collection, batches: Sequence[object], clients: Sequence[list[str]] | None
) -> Callable[[], object]:
    keystream = Keystream()
    responder = responder_of(collection, Secret(bytes(NEW_SECRET_BYTES)), keystream)
    return lambda: sum(map(len, packed(collection, responder, keystream, batches, clients)))


def packed(
    collection: Collection,
    responder: Responder,
    keystream: Keystream,
    batches: Iterable[object],
    clients: Sequence[list[str]] | None,
) -> Iterator[bytes]:
    """Check, randomize and pack batch by batch, like a producer without its store; return encoded packs."""
    packer = Packer([collection], PACK_REPORTS, 1.0, keystream)
    for number, values in enumerate(batches):
        batch = responder.prepare(values, clients and clients[number])
        for part in parts(collection.mechanism, batch.count):
            cohorts, rows = batch.respond(part)
            windows = np.zeros(len(rows), np.int64)
            yield from map(wire.encode, packer.add(collection.fingerprint, windows, cohorts, rows, 0.0))
    yield from map(wire.encode, packer.flush())


def count_krr(count: int, k: int, epsilon: float) -> Callable[[], object]:
    """Decode packs and count their reports."""
    collection = Collection("values", KRR.from_epsilon(k, epsilon))
    payload = np.random.default_rng(1).integers(k, size=count).astype(wire.bucket_dtype(k))
    return _counting(collection, payload.view(np.uint8).reshape(count, -1), k)


def count_rappor(
    count: int, bits: int, hashes: int, cohorts: int, f: float, p: float, q: float
) -> Callable[[], object]:
    """Decode packs and count their bits by cohort."""
    collection = Collection("values", Rappor.from_probabilities(bits, hashes, cohorts, f, p, q))
    rows = np.random.default_rng(1).integers(256, size=(count, bits // 8), dtype=np.uint8)
    return _counting(collection, rows, bits)


def _counting(
    collection: Collection, rows: "np.typing.NDArray[np.uint8]", width: int
) -> Callable[[], object]:
    numbers = np.arange(len(rows)) // PACK_REPORTS % collection.cohorts
    packer = Packer([collection], PACK_REPORTS, 1.0, Keystream())
    cohorts = numbers.astype(np.uint16)
    packs = packer.add(collection.fingerprint, np.zeros(len(rows), np.int64), cohorts, rows, 0.0)
    records = [wire.encode(pack) for pack in [*packs, *packer.flush()]]

    def run() -> int:
        counts = np.zeros((collection.cohorts, width), np.int64)
        for record in records:
            pack = wire.decode(record)
            if is_countable(pack):
                add_pack(counts[pack.cohort], pack)
        return int(counts.sum())

    return run


JOBS = {
    "k-RR": krr,
    "local hashing": local_hash,
    "longitudinal local hashing": longitudinal_hash,
    "number": number,
    "RAPPOR": rappor,
    "count k-RR": count_krr,
    "count RAPPOR": count_rappor,
}
