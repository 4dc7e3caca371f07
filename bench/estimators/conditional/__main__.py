"""Simulate the table, write it and its picture to bench/results, and print it.

    python -m bench.estimators.conditional [--quick] [--only KIND] [--seed SEED] [--runs RUNS]

Each kind is stored when it is done, so that a run that was stopped goes on with --only.
"""

from itertools import product
from pathlib import Path

import click

from bench.estimators.conditional.judging import Verdict
from bench.estimators.conditional.kinds import EPSILONS, KINDS, REPORTS
from bench.estimators.conditional.picture import draw
from bench.estimators.conditional.table import Cell, cells_of, read_cells, table, write_cells

RUNS, QUICK_RUNS = 60, 30
QUICK_EPSILONS, QUICK_REPORTS = (1.0, 4.0, 8.0), (100, 1_000, 10_000)
RESULTS, FIGURES = Path(__file__).parents[2] / "results", "conditional_coverage.jsonl"


def simulated(
    kind: str, epsilons: tuple[float, ...], reports: tuple[int, ...], runs: int, seed: int
) -> list[Cell]:
    """Judge all cells of a kind; their noise depends on the seed alone."""
    cells = []
    for number, (epsilon, size) in enumerate(product(epsilons, reports)):
        found = KINDS[kind].judged(epsilon, size, runs, seed * 1_000_000 + 100 * number)
        cells += cells_of(kind, epsilon, size, found)
    return cells


@click.command()
@click.option("--quick", is_flag=True, help="Fewer cells and runs, written only where --results says.")
@click.option("--only", "chosen", multiple=True, type=click.Choice(list(KINDS)), help="This kind again.")
@click.option("--runs", type=click.IntRange(8), help=f"Runs of each population, by default {RUNS}.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the noise.")
@click.option(
    "--results", type=click.Path(path_type=Path), help="Folder of results instead of bench/results."
)
def main(*, quick: bool, chosen: tuple[str, ...], runs: int | None, seed: int, results: Path | None) -> None:
    """Print the table; exit status 1 if a cell failed."""
    epsilons, reports = (QUICK_EPSILONS, QUICK_REPORTS) if quick else (EPSILONS, REPORTS)
    folder = results or (None if quick else RESULTS)
    cells = read_cells(folder / FIGURES) if folder and chosen else []
    for kind in chosen or KINDS:
        cells = [cell for cell in cells if cell.kind != kind]
        cells += simulated(kind, epsilons, reports, runs or (QUICK_RUNS if quick else RUNS), seed)
        click.echo(kind, err=True)
        if folder:
            write_results(folder, cells)
    click.echo(table(cells), nl=False)
    if any(cell.judged.verdict == Verdict.FAILED for cell in cells):
        raise click.exceptions.Exit(1)


def write_results(folder: Path, cells: list[Cell]) -> None:
    """Write figures, table and picture."""
    folder.mkdir(parents=True, exist_ok=True)
    write_cells(folder / FIGURES, cells)
    (folder / "conditional_coverage.md").write_text(table(cells))
    draw(cells, folder / "conditional_coverage.png")


if __name__ == "__main__":
    main()
