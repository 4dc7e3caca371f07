"""Confidence sequences of a number's mean, from counts of Square Wave reports: coverage, and widths."""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

from bench.estimators.changes.anytime import RUNS, judged
from bench.sections import ResultRow, Section, percent
from deniable.aggregator.history.share_sequences import ALPHA, ends_at_every_look
from deniable.aggregator.history.window_shares import WindowShares
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.frequency.intervals.confidence_sequence import mean_over_windows
from deniable.estimators.mechanisms.square_wave import SquareWave

WINDOWS, STEPS = 300, 64
LOOKS = (1, 20, 300)

#: Reports of each true cell in a window, by its number from 0.
CellCounts = Mapping[int, int]


def at_the_ends(window: int, reports: int) -> CellCounts:
    """All numbers at one end, and all at the other in the next window: the most noise that there is."""
    return {STEPS - 1 if window % 2 else 0: reports}


def in_the_middle(window: int, reports: int) -> CellCounts:
    """All numbers near the middle, going up and down: the least noise."""
    return {STEPS // 2 + round(4 * np.sin(window / 25)): reports}


def in_four_cells(window: int, reports: int) -> CellCounts:
    """Numbers of clients who return with the same ones, spread over the range; noise is new."""
    return dict.fromkeys((3, 20, 40, 61), reports // 4)


SCENES: dict[str, Callable[[int, int], CellCounts]] = {
    "at either end, in turn": at_the_ends,
    "near the middle, moving": in_the_middle,
    "the same four numbers": in_four_cells,
}


def coverage(
    rng: np.random.Generator, numbers: str, reports: int, epsilon: float, runs: int, windows: int = WINDOWS
) -> ResultRow:
    """Simulate runs of one scene: windows of so many reports each."""
    wave = SquareWave.from_epsilon(0.0, 1.0, STEPS, epsilon)
    scores, truth = wave.scores, np.empty((windows, 1))
    means, errors = np.empty((2, windows, runs))
    for window in range(windows):
        counts = np.zeros((runs, wave.width), np.int64)
        cells = SCENES[numbers](window, reports)
        for cell, held in cells.items():
            counts += rng.multinomial(held, wave.channel[:, cell], size=runs)
        truth[window] = sum(held * (cell + 0.5) for cell, held in cells.items()) / STEPS / reports
        means[window] = counts @ scores / reports
        errors[window] = np.sqrt(np.maximum(counts @ scores**2 / reports - means[window] ** 2, 0) / reports)
    weights = np.full(windows, float(reports))
    half = QUANTILE_975 * np.sqrt(np.cumsum(errors**2, axis=0)) / np.arange(1, windows + 1)[:, None]
    true_mean, mean = mean_over_windows(truth, weights), mean_over_windows(means, weights)
    low, high = ends_at_every_look(
        Collection("number", wave),
        [WindowShares(place, reports, means[place], errors[place]) for place in range(windows)],
        ALPHA,
    )
    looks = np.array([look for look in LOOKS if look <= windows]) - 1
    widths = zip(LOOKS, (high - low)[looks].mean(axis=1), 2 * half[looks].mean(axis=1), strict=False)
    return {
        "numbers": numbers,
        "reports of a window": reports,
        "epsilon": epsilon,
        "fixed-time": percent(_held(mean - half, true_mean, mean + half)),
        "sequence": percent(_held(low, true_mean, high)),
        **{f"width at {look}, %": f"{100 * one:.3g} ({100 * fixed:.3g})" for look, one, fixed in widths},
    }


def _held(low: FloatArray, true_mean: FloatArray, high: FloatArray) -> float:
    """Return the share of runs whose intervals hold the mean after every window."""
    return float(((low <= true_mean) & (true_mean <= high)).all(axis=0).mean())


def mean_sequences(runs: int = RUNS) -> Section:
    """Judge the sequences of all scenes."""
    rng = np.random.default_rng(1)
    rows = [coverage(rng, *each, runs) for each in product(SCENES, (100, 10_000), (1.0, 4.0))]
    about = (
        f"The mean of a number at every look of {WINDOWS} windows, percent of runs; widths in percent of the "
        "range, in parentheses those of fixed-time 95 % intervals of the same unbiased mean, with its "
        "estimated error, looked at after every window."
    )
    return judged(about, rows, "sequence")


CASES = {"the mean of a number at every look": mean_sequences}
