"""Confidence sequences of a number's mean: coverage at every look, and widths.

    python -m bench.estimators.numbers.mean_sequence

Simulated from counts of Square Wave reports. Beside the sequence are fixed-time 95 % intervals of the same
unbiased mean, with its estimated error, looked at after every window.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

import click
import numpy as np

from deniable.aggregator.history.share_sequences import ALPHA, ends_at_every_look
from deniable.aggregator.history.window_shares import WindowShares
from deniable.estimators.arrays import FloatArray
from deniable.estimators.collection import Collection
from deniable.estimators.frequency.estimate import QUANTILE_975
from deniable.estimators.frequency.intervals.confidence_sequence import mean_over_windows
from deniable.estimators.mechanisms.square_wave import SquareWave

RESULTS = Path(__file__).parents[2] / "results"
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


@dataclass(frozen=True)
class MeanSequenceCell:
    """Shares of runs in which the mean is held at every look; widths in fractions of the range."""

    numbers: str
    reports: int
    epsilon: float
    fixed: float
    sequence: float
    fixed_widths: tuple[float, ...]
    widths: tuple[float, ...]


def coverage(
    rng: np.random.Generator, numbers: str, reports: int, epsilon: float, runs: int, windows: int = WINDOWS
) -> MeanSequenceCell:
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
    return MeanSequenceCell(
        numbers,
        reports,
        epsilon,
        _held(mean - half, true_mean, mean + half),
        _held(low, true_mean, high),
        tuple((2 * half[looks]).mean(axis=1).tolist()),
        tuple((high - low)[looks].mean(axis=1).tolist()),
    )


def _held(low: FloatArray, true_mean: FloatArray, high: FloatArray) -> float:
    """Return the share of runs whose intervals hold the mean after every window."""
    return float(((low <= true_mean) & (true_mean <= high)).all(axis=0).mean())


def text_of(cells: list[MeanSequenceCell]) -> str:
    """Markdown of the table."""
    widths = " | ".join(f"width at {look}, %" for look in LOOKS)
    lines = [
        f"The mean of a number at every look of {WINDOWS} windows, percent of runs; widths in percent of the",
        "range, in parentheses those of fixed-time intervals:",
        "",
        f"| numbers | reports of a window | epsilon | fixed-time | sequence | {widths} |",
        "|---|---:|---:|---:|---:|" + "---:|" * len(LOOKS),
    ]
    for each in cells:
        shown = zip(each.widths, each.fixed_widths, strict=True)
        ends = " | ".join(f"{100 * width:.3g} ({100 * fixed:.3g})" for width, fixed in shown)
        lines.append(
            f"| {each.numbers} | {each.reports:,} | {each.epsilon:g} | {100 * each.fixed:.1f} | "
            f"{100 * each.sequence:.1f} | {ends} |"
        )
    return "\n".join([*lines, ""])


@click.command()
@click.option("--runs", type=click.IntRange(10), default=1000, show_default=True, help="Of each scene.")
def main(runs: int) -> None:
    """Print the table and write it to bench/results; exit status 1 if a sequence is covered below 93 %."""
    rng = np.random.default_rng(1)
    cells = [
        coverage(rng, numbers, reports, epsilon, runs)
        for numbers, reports, epsilon in product(SCENES, (100, 10_000), (1.0, 4.0))
    ]
    text = text_of(cells)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "mean_sequence.md").write_text(text)
    figures = [asdict(each) for each in cells]
    (RESULTS / "mean_sequence.json").write_text(json.dumps(figures, indent=1) + "\n")
    click.echo(text, nl=False)
    if min(each.sequence for each in cells) < 0.93:
        raise click.ClickException("a mean is covered below 93 % at every look")


if __name__ == "__main__":
    main()
