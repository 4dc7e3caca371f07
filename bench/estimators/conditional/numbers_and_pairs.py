"""Numbers, and pairs of fields, one window."""

import numpy as np

from bench.estimators.conditional.fixed_clients import PAIR_SHAPE, names, true_numbers, true_pairs
from bench.estimators.conditional.judging import Measured, Run
from bench.estimators.conditional.measuring import discoveries, intervals, scalar, shares, window_of
from bench.estimators.populations import Counts, channel_counts, shown_bits
from deniable.aggregator.estimation.window_estimate import estimate
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection, Field, pair_labels
from deniable.estimators.frequency.estimate import Estimate, QuantileEstimate
from deniable.estimators.frequency.number import LEVELS, row_sums
from deniable.estimators.mechanisms.matrix.one_hot_pair import OneHotPair
from deniable.estimators.mechanisms.matrix.pair import PairKRR
from deniable.estimators.mechanisms.square_wave import SquareWave

STEPS = 64


def number_of(epsilon: float) -> SquareWave:
    """Square Wave on [0, 1]."""
    return SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon)


def number_run(mechanism: SquareWave, population: str, reports: int) -> Run:
    """One window of a number: shares of rows, the mean, and quantiles."""
    numbers, collection = true_numbers(population, reports), Collection("table", mechanism)
    truth = np.bincount(mechanism.cells(numbers), minlength=STEPS)
    rows, mean = row_sums(truth / reports, mechanism), float(numbers.mean())
    lower, upper = (np.quantile(numbers, LEVELS, method=method) for method in ("lower", "higher"))

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        found = estimate(collection, window_of(channel_counts(truth, mechanism, rng)))
        measured = shares(found, rows)
        measured["mean"] = (
            scalar(found.mean.low, found.mean.high, mean) if found.mean else scalar(None, None, 0)
        )
        low, high = _quantile_ends(found.quantiles)
        # Any number between two neighbours is a quantile of few numbers.
        measured["quantiles"] = intervals(low, high, np.clip(low, lower, upper))
        return measured

    return run


def _quantile_ends(stated: tuple[QuantileEstimate, ...]) -> tuple[FloatArray, FloatArray]:
    """Ends of each of the levels, float64 (levels,); nan where none is stated."""
    ends = {quantile.level: (quantile.low, quantile.high) for quantile in stated}
    low, high = np.array([ends.get(level, (np.nan, np.nan)) for level in LEVELS], np.float64).T
    return low, high


def krr_pair_of(epsilon: float) -> PairKRR:
    """A k-RR of each field at half the epsilon."""
    return PairKRR.from_epsilons(*PAIR_SHAPE, epsilon / 2, epsilon / 2)


def one_hot_pair_of(epsilon: float) -> OneHotPair:
    """A bit for each pair."""
    return OneHotPair.from_epsilon(*PAIR_SHAPE, epsilon)


def pair_run(mechanism: PairKRR | OneHotPair, population: str, reports: int) -> Run:
    """One window of a pair of fields: the joint table, margins and conditional shares."""
    fields = tuple(Field(name, names(size, name), False) for name, size in zip("ab", PAIR_SHAPE, strict=True))
    collection = Collection("table", mechanism, pair_labels(*fields), fields=fields)
    truth = true_pairs(population, reports)

    def run(rng: np.random.Generator) -> dict[str, Measured]:
        found = estimate(collection, _pair_window(truth, mechanism, rng))
        return shares(found, truth.ravel() / reports) | _pair_figures(found, truth)

    return run


def _pair_window(truth: Counts, mechanism: PairKRR | OneHotPair, rng: np.random.Generator) -> WindowCounts:
    reports = int(truth.sum())
    if isinstance(mechanism, PairKRR):
        return window_of(channel_counts(truth, mechanism, rng))
    return window_of(shown_bits(rng, truth.ravel(), reports, mechanism), np.array([reports]))


def _pair_figures(found: Estimate, truth: Counts) -> dict[str, Measured]:
    if found.pair is None:
        return {}
    sums = np.concatenate([truth.sum(axis=1), truth.sum(axis=0)])
    of_first = (truth / np.maximum(1, truth.sum(axis=1, keepdims=True))).ravel()
    of_second = (truth / np.maximum(1, truth.sum(axis=0))).ravel()
    known = np.concatenate(
        [np.repeat(truth.sum(axis=1) > 0, truth.shape[1]), np.tile(truth.sum(axis=0) > 0, truth.shape[0])]
    )
    margins, given = found.pair.margins, (found.pair.given_first, found.pair.given_second)
    low, high = (np.concatenate([getattr(each, end) for each in margins]) for end in ("low", "high"))
    least, most = (np.concatenate([getattr(each, end) for each in given])[known] for end in ("low", "high"))
    significant = np.concatenate([each.significant for each in margins])
    return {
        "margins": intervals(low, high, sums / truth.sum()),
        "discoveries in margins": discoveries(significant, sums == 0),
        "conditional": intervals(least, most, np.concatenate([of_first, of_second])[known]),
    }
