"""Data for pictures: two collections over forty windows, a number, a pair, texts asked in two ways."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.estimators.populations import hashed_counts
from deniable.aggregator.deployment import ClientLimits
from deniable.aggregator.estimation import window_estimate
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.deploy.demo.flights import AIR_MINUTES, load_flights
from deniable.deploy.demo.setup import DESTINATION_EPSILON
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.square_wave import SquareWave
from tests.support.aggregator.builders import T0
from tests.support.estimators.pairs import pair_counts
from tests.support.estimators.simulation import generator, krr_counts, rappor_counts, zipf_counts

WINDOWS = 40
MISSING = (20, 21)
REPORTS = 60_000
CARRIERS = ("UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS")
AIRPORTS = ("ORD", "ATL", "LAX", "BOS", "MCO", "CLT", "SFO", "FLL", "MIA", "DCA", "DTW", "DFW", "RDU", "TPA")
DECOYS = tuple(f"decoy-{number}" for number in range(60))
CARRIER = Collection(
    name="carrier", mechanism=KRR.from_epsilon(len(CARRIERS), math.log(3)), values=CARRIERS, window_seconds=60
)
DESTINATION = Collection(
    name="destination",
    mechanism=Rappor.from_probabilities(128, 2, 8, 0.25, 0.35, 0.65),
    candidates=AIRPORTS + DECOYS,
    memoize=True,
    window_seconds=60,
)
AIR_TIME = Collection(
    name="air-time", mechanism=SquareWave.from_epsilon(-0.5, AIR_MINUTES - 0.5, 240, 2), window_seconds=60
)
#: A number whose estimates take a tenth of the time.
DELAY = replace(AIR_TIME, name="delay", mechanism=SquareWave.from_epsilon(-0.5, 119.5, 24, 2))
FIELDS = (Field("carrier", CARRIERS, other=False), Field("destination", AIRPORTS[:7], other=False))
PAIR = Collection(
    name="carrier-destination",
    mechanism=PairKRR.from_epsilons(len(CARRIERS), 7, 2, 2),
    values=pair_labels(*FIELDS),
    fields=FIELDS,
    window_seconds=60,
)
SCENE = {collection.fingerprint: collection for collection in (CARRIER, DESTINATION)}
LIMITS = {
    "carrier": ClientLimits(1, (10.0, 1e-6, 86_400), lambda: 9),
    "destination": ClientLimits(1, (8.0, 1e-6, 2_592_000), lambda: None, values="unchanged"),
}


def estimates(windows: int = WINDOWS) -> Iterator[EstimateRecord]:
    """The newest so many windows: shares drift, the last one is provisional, and two of all are missing."""
    rng = generator(1)
    for step in range(WINDOWS - windows, WINDOWS):
        if step in MISSING:
            continue
        start, final = T0 - 60 * (WINDOWS - 1 - step), step < WINDOWS - 1
        drift = np.sin(step / 6 + np.arange(len(CARRIERS))) / 4
        carriers = np.rint(zipf_counts(len(CARRIERS), REPORTS, 0.8) * np.exp(drift)).astype(np.int64)
        counts = krr_counts(rng, carriers, CARRIER.mechanism)
        yield _record(CARRIER, start, counts[None], counts[None].sum(axis=1), final)
        airports = zipf_counts(len(AIRPORTS), REPORTS, 0.7)
        yield _record(
            DESTINATION, start, *rappor_counts(rng, airports, AIRPORTS, DESTINATION.mechanism), final
        )


def number_estimates() -> Iterator[EstimateRecord]:
    """Two windows of the air times of real flights."""
    rng, mechanism = generator(2), AIR_TIME.mechanism
    truth = np.bincount(mechanism.cells(np.array(load_flights().known_air_minutes())), minlength=240)
    columns = (mechanism.channel / mechanism.channel.sum(axis=0)).T
    for start, final in ((T0 - 60, True), (T0, False)):
        counts = rng.multinomial(truth, columns).sum(axis=0, dtype=np.int64)
        yield _record(AIR_TIME, start, counts[None], counts[None].sum(axis=1), final)


def delay_estimates() -> Iterator[EstimateRecord]:
    """Two windows of even counts."""
    counts = np.full((1, DELAY.width), REPORTS // DELAY.width)
    for start, final in ((T0 - 60, True), (T0, False)):
        yield _record(DELAY, start, counts, counts.sum(axis=1), final)


def asked_twice() -> list[tuple[Collection, EstimateRecord]]:
    """The destinations of all flights in one window, asked by RAPPOR and by local hashing as in the demo."""
    flights, rng = load_flights(), generator(5)
    held = Counter(flights.destinations)
    airports = (*sorted(held), *flights.decoys)
    clients = np.array([held[each] for each in airports])
    by_rappor = replace(DESTINATION, candidates=airports)
    hashing = LocalHash.from_epsilon(DESTINATION_EPSILON)
    by_hashing = replace(by_rappor, name="destination-hashed", mechanism=hashing, memoize=False)
    bits, sizes = rappor_counts(rng, clients, airports, by_rappor.mechanism)
    hashed = hashed_counts(clients, airports, hashing, by_hashing.hash_key, rng)
    return [
        (by_rappor, _record(by_rappor, T0, bits, sizes, final=True)),
        (by_hashing, _record(by_hashing, T0, hashed[None], hashed[None].sum(axis=1), final=True)),
    ]


def pair_estimate() -> EstimateRecord:
    """One window in which carriers have destinations that they prefer."""
    rng, mechanism = generator(4), PAIR.mechanism
    assert isinstance(mechanism, PairKRR)
    carriers = zipf_counts(len(CARRIERS), 500_000, 0.8)
    truth = np.array([rng.multinomial(each, rng.dirichlet(np.ones(7))) for each in carriers])
    counts = pair_counts(rng, truth, mechanism).reshape(1, -1)
    return _record(PAIR, T0, counts, counts.sum(axis=1), final=False)


def _record(
    collection: Collection, start: int, counts: np.ndarray, sizes: np.ndarray, final: bool
) -> EstimateRecord:
    window = WindowCounts(counts, sizes, packs=REPORTS // 1000, rejected=0)
    result = window_estimate.estimate(collection, window)
    return window_estimate.record_of(collection, start, window, result, final=final)
