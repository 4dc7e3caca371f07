"""The comparison of the MLE* poster: squared error and likelihood of four estimators of k-RR on its grid.

    python -m bench.estimators.poster

Checked in every cell: neither InvN nor InvP has a lower loss than MLE* in any repetition (Inv, which is no
distribution, is left out), and the mean MSE of MLE* is not the worst of these three.

Source: Pinzón et al., "Estimating the true distribution of data collected with randomized response"
(arXiv 2601.08603), "Experimental results".
"""

import itertools
import json
import time
from pathlib import Path

import click
import numpy as np

from bench.estimators.poster_cell import TIE, Cell, run_cell

REPORTS = (100, 1000, 10_000, 100_000, 1_000_000)
VALUES = (50, 500, 5000, 10_000)
EXPONENTS = (0.01, 1.3, 2.5)
EPSILONS = tuple(range(1, 11))
REPETITIONS = 50
COMPARED = ("InvN", "InvP", "MLE*")
RESULTS = Path(__file__).parents[1] / "results"


def summary(cells: list[Cell], repetitions: int) -> str:
    """Markdown: how often each is best and worst in MSE, by how much, and the results of the checks."""
    lines = [
        f"{len(cells)} cells, {repetitions} repetitions each; MSE over the lowest of the three.",
        "",
        "| estimator | cells with lowest MSE | with highest | median | at most | loss above MLE*, at most |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    extremes = [sorted(cell.mse[name] for name in COMPARED) for cell in cells]
    for name in COMPARED:
        pairs = [(cell.mse[name], mse) for cell, mse in zip(cells, extremes, strict=True)]
        best = sum(own <= low * (1 + TIE) for own, (low, _, _) in pairs)
        worst = sum(own * (1 + TIE) >= high > low * (1 + TIE) for own, (low, _, high) in pairs)
        ratios = [own / low for own, (low, _, _) in pairs]
        loss = max(cell.loss[name] - cell.loss["MLE*"] for cell in cells)
        lines.append(
            f"| {name} | {best} | {worst} | × {np.median(ratios):.3g} | × {max(ratios):.3g} | {loss:.3g} |"
        )
    inverted = [cell.mse["Inv"] / cell.mse["MLE*"] for cell in cells]
    return "\n".join(
        [
            *lines,
            "",
            f"Inv, no distribution: MSE up to {max(inverted):.3g} times that of MLE*.",
            f"Cells where InvN or InvP is likelier than MLE*: {sum(not cell.likeliest for cell in cells)}.",
            f"Cells where MLE* is the worst of the three in MSE: {sum(cell.mle_is_worst for cell in cells)}.",
            "",
        ]
    )


def figures(cells: list[Cell]) -> str:
    """All figures as JSON, one cell per line, to four digits."""
    rows = [{**vars(cell), "mse": _short(cell.mse), "loss": _short(cell.loss)} for cell in cells]
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def _short(figures: dict[str, float]) -> dict[str, float]:
    return {name: float(f"{figure:.4g}") for name, figure in figures.items()}


@click.command()
@click.option("--repetitions", type=click.IntRange(1), default=REPETITIONS, show_default=True)
def main(repetitions: int) -> None:
    """Print the summary, and write it with figures and plot to bench/results; status 1 if a check fails."""
    from bench.estimators.poster_plot import plot  # imported here, so the rest runs without matplotlib

    start = time.perf_counter()
    grid = itertools.product(VALUES, EXPONENTS, EPSILONS, REPORTS)
    cells = [
        run_cell(reports, values, exponent, epsilon, repetitions)
        for values, exponent, epsilon, reports in grid
    ]
    click.echo(f"{time.perf_counter() - start:.0f} s", err=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "estimators_poster.md").write_text(summary(cells, repetitions))
    (RESULTS / "estimators_poster.json").write_text(figures(cells))
    plot(cells, RESULTS / "estimators_poster.png")
    click.echo(summary(cells, repetitions), nl=False)
    if any(cell.mle_is_worst or not cell.likeliest for cell in cells):
        raise click.ClickException("a check fails")


if __name__ == "__main__":
    main()
