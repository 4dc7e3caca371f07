"""How often the interval of a change holds it if the change begins inside a window.

    python -m bench.estimators.changes.part_changes [--runs RUNS]

Simulated from counts of k-RR reports: 10 values, 10,000 reports a window, 100 windows without a change, then
one of which a part has the old shares. `at once` is of the statement in the window of the alarm, `settled` of
the one that stands 40 windows after the change.
"""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import click
import numpy as np

from bench.estimators.changes.anytime import BEFORE, channel_of, collection_of, window_of
from bench.estimators.populations import zipf_shares
from deniable.aggregator.history.share_changes import ChangeMonitor

RESULTS = Path(__file__).parents[2] / "results"
VALUES, REPORTS, AFTER, MOVED = 10, 10_000, 40, 3
PARTS = (0.1, 0.3, 0.5, 0.7, 0.9)
SIZES = ((1.0, 2.0), (1.0, 4.0), (1.0, 10.0), (1.0, 20.0), (4.0, 4.0), (4.0, 20.0), (4.0, 40.0))


@dataclass(frozen=True)
class PartCell:
    """Shares of found changes that are held by their intervals, for one epsilon and size."""

    epsilon: float
    change: float
    runs: int
    found: float
    at_once: float
    settled: float


def part_cell(rng: np.random.Generator, epsilon: float, change: float, runs: int) -> PartCell:
    """Change a share by `change` standard errors of a window, `runs` times for each of PARTS."""
    made, share = collection_of(VALUES, epsilon), zipf_shares(VALUES, 1.0)
    size = change * float(channel_of(made).std_error(share, REPORTS)[MOVED])
    after = share * (1 - share[MOVED] - size) / (1 - share[MOVED])
    after[MOVED] = share[MOVED] + size
    held: list[tuple[bool, bool]] = []
    for part, _ in product(PARTS, range(runs)):
        mixed = part * after + (1 - part) * share
        monitor, first = ChangeMonitor(made), None
        for hour in range(BEFORE + AFTER):
            true = share if hour < BEFORE else mixed if hour == BEFORE else after
            monitor.add(window_of(rng, made, true, REPORTS, hour))
            if hour < BEFORE or (first is not None and hour < BEFORE + AFTER - 1):
                continue
            stated = [each for each in monitor.update() if each.value == str(MOVED)]
            first = first or (stated[0] if stated else None)
        if first is not None:
            held.append((first.low <= size <= first.high, stated[0].low <= size <= stated[0].high))
    at_once, settled = np.mean(held, axis=0).tolist() if held else (np.nan, np.nan)
    return PartCell(epsilon, change, runs * len(PARTS), len(held) / runs / len(PARTS), at_once, settled)


def table_of(cells: list[PartCell]) -> str:
    """Return a table in Markdown, percent."""
    lines = [
        f"Changes after {', '.join(f'{100 * part:g}' for part in PARTS)} % of a window, percent:",
        "",
        f"| epsilon | change, standard errors | runs | found in {AFTER} windows | at once | settled |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {each.epsilon:g} | {each.change:g} | {each.runs} | {100 * each.found:.0f} | "
        f"{100 * each.at_once:.1f} | {100 * each.settled:.1f} |"
        for each in cells
    ]
    return "\n".join(lines) + "\n"


@click.command()
@click.option("--runs", default=20, show_default=True, help="For each part of a window.")
def main(runs: int) -> None:
    """Print the table and write it to bench/results; exit status 1 if fewer than 93 % of changes are held."""
    rng = np.random.default_rng(1)
    cells = [part_cell(rng, epsilon, change, runs) for epsilon, change in SIZES]
    text = table_of(cells)
    (RESULTS / "part_changes.md").write_text(text)
    click.echo(text, nl=False)
    if min(each.settled for each in cells) < 0.93:
        raise click.ClickException("settled intervals hold the change in less than 93 %")


if __name__ == "__main__":
    main()
