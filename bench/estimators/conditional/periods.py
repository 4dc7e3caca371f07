"""Several windows: comparisons of two periods in which nothing changed, and roll-ups of returning clients."""

from collections.abc import Callable

import numpy as np

from bench.estimators.conditional.buckets import both_epsilons
from bench.estimators.conditional.fixed_clients import VALUES, held, held_texts, names
from bench.estimators.conditional.judging import Measured, Run
from bench.estimators.conditional.measuring import discoveries, intervals, shares, window_of
from bench.estimators.conditional.texts import hashed_drawing
from bench.estimators.populations import Counts, bit_counts, report_counts, shown_bits
from deniable.aggregator.history.periods import Period
from deniable.aggregator.history.rollup import roll_up
from deniable.aggregator.history.window_reader import Joined
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.comparison import JoinedPeriod, compare_periods
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.hashing.local_hash import LocalHash
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor import Rappor
from deniable.estimators.mechanisms.rappor_hot import HotRappor

#: Values of a k-RR whose periods are compared, and candidates of local hashing.
COMPARED_VALUES = 100
#: How many times more reports the second period has.
MORE_REPORTS = 10
WINDOWS = 4

Drawing = Callable[[Counts, np.random.Generator], WindowCounts]
Compared = KRR | HotRappor | LocalHash | Rappor


def comparison_run(mechanism: Compared, population: str, reports: int) -> Run:
    """Compare two periods with the same shares, the second of ten times as many reports."""
    collection, draw, truth = _comparable(mechanism, population, reports)
    sizes = (truth, truth * MORE_REPORTS)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        first, second = (
            JoinedPeriod(Period(start, start + 60), joined_windows(draw(counts, rng), 1))
            for start, counts in zip((0, 600), sizes, strict=True)
        )
        found = compare_periods(collection, first, second, FALSE_DISCOVERY_RATE)
        low, high = np.array(found.low), np.array(found.high)
        return {
            "difference": intervals(low, high, np.zeros(len(low)), -1.0, 1.0),
            "discoveries": discoveries(np.array(found.significant), np.ones(len(low), np.bool_)),
        }

    return run


def _comparable(mechanism: Compared, population: str, reports: int) -> tuple[Collection, Drawing, Counts]:
    """Return a collection, what draws its windows, and clients by value or text."""
    match mechanism:
        case KRR():
            collection = Collection("table", mechanism, names(mechanism.k), minimum_reports=1)
            truth = held(population, reports, mechanism.k)
            return collection, lambda counts, rng: window_of(report_counts(rng, counts, mechanism)), truth
        case HotRappor():
            collection = Collection("table", mechanism, names(VALUES), minimum_reports=1)
            return (
                collection,
                lambda counts, rng: _bits_window(counts, mechanism, rng),
                held(population, reports),
            )
    listed = VALUES if isinstance(mechanism, Rappor) else COMPARED_VALUES
    truth, texts, candidates = held_texts(population, reports, listed)
    collection = Collection("table", mechanism, candidates=candidates, minimum_reports=1)
    if isinstance(mechanism, Rappor):
        return (
            collection,
            lambda counts, rng: window_of(*bit_counts(counts, list(texts), mechanism, rng)),
            truth,
        )
    draw = hashed_drawing(mechanism, collection, texts)
    return collection, lambda counts, rng: window_of(draw(counts, rng)), truth


def _bits_window(counts: Counts, mechanism: HotRappor, rng: np.random.Generator) -> WindowCounts:
    reports = int(counts.sum())
    return window_of(shown_bits(rng, counts, reports, mechanism), np.array([reports]))


def joined_windows(window: WindowCounts, windows: int) -> Joined:
    """Counts of so many windows of equally many reports."""
    reports = {60 * number: window.reports // windows for number in range(windows)}
    return Joined(window, reports, (), {}, 0)


def memoized_hot_of(epsilon: float) -> HotRappor:
    """One-hot RAPPOR with both steps: the first alone has twice the epsilon, the second one the epsilon."""
    half_flip = 1 / (1 + np.exp(both_epsilons(epsilon)[0] / 2))
    p = 1 / (1 + float(np.exp(epsilon)))
    return HotRappor.from_probabilities(VALUES, 1, 2 * float(half_flip), p, 1 - p)


def krr_roll_up_run(mechanism: LongitudinalKRR, population: str, reports: int) -> Run:
    """Four windows of the same clients, `reports` in all, under the assumption that clients return."""
    clients = reports // WINDOWS
    truth = held(population, clients)

    def draw(rng: np.random.Generator) -> WindowCounts:
        kept = report_counts(rng, truth, mechanism.permanent)
        return window_of(
            np.sum([report_counts(rng, kept, mechanism.instantaneous) for _ in range(WINDOWS)], axis=0)
        )

    return _roll_up_run(
        Collection("table", mechanism, names(VALUES), minimum_reports=1), draw, truth / clients
    )


def hot_roll_up_run(mechanism: HotRappor, population: str, reports: int) -> Run:
    """As `krr_roll_up_run`, of one-hot RAPPOR."""
    clients = reports // WINDOWS
    truth, size = held(population, clients), np.array([clients * WINDOWS])
    permanent = HotRappor.from_probabilities(VALUES, 1, 0.0, mechanism.f / 2, 1 - mechanism.f / 2)
    second = HotRappor(VALUES, 1, 0, mechanism.p_threshold, mechanism.q_threshold)

    def draw(rng: np.random.Generator) -> WindowCounts:
        kept = shown_bits(rng, truth, clients, permanent)[0]
        ones = np.sum([shown_bits(rng, kept, clients, second) for _ in range(WINDOWS)], axis=0)
        return window_of(ones, size)

    return _roll_up_run(
        Collection("table", mechanism, names(VALUES), minimum_reports=1), draw, truth / clients
    )


def _roll_up_run(
    collection: Collection, draw: Callable[[np.random.Generator], WindowCounts], truth: FloatArray
) -> Run:
    def run(rng: np.random.Generator) -> dict[str, Measured]:
        found = roll_up(collection, joined_windows(draw(rng), WINDOWS))
        if found is None:
            raise ValueError(f"a roll-up must have reports, got none of {collection.name}")
        return shares(found.shared, truth)

    return run
