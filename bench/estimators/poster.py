"""The comparison of the MLE* poster: squared error and likelihood of four estimators of k-RR on its grid.

Source: Pinzón et al., "Estimating the true distribution of data collected with randomized response"
(arXiv 2601.08603), "Experimental results".
"""

import itertools
from collections.abc import Sequence

import numpy as np

from bench.estimators.poster_cell import TIE, Cell, run_cell
from bench.sections import ResultRow, Section

REPORTS = (100, 1000, 10_000, 100_000, 1_000_000)
VALUES = (50, 500, 5000, 10_000)
EXPONENTS = (0.01, 1.3, 2.5)
EPSILONS = tuple(range(1, 11))
RUNS = 50
COMPARED = ("InvN", "InvP", "MLE*")
ABOUT = """\
Of all cells of the poster's grid: in how many an estimator has the lowest and the highest mean squared
error of the three, and its error over the lowest. Missed would be a cell in which InvN or InvP has a
lower loss than MLE* in any repetition, or MLE* the highest error. Inv, which is no distribution, is left
out."""


def extremes(cells: Sequence[Cell], name: str) -> ResultRow:
    """How often an estimator is best and worst in MSE, and by how much."""
    triples = [sorted(cell.mse[each] for each in COMPARED) for cell in cells]
    pairs = [(cell.mse[name], triple) for cell, triple in zip(cells, triples, strict=True)]
    ratios = [own / low for own, (low, _, _) in pairs]
    return {
        "estimator": name,
        "cells with lowest MSE": sum(own <= low * (1 + TIE) for own, (low, _, _) in pairs),
        "with highest": sum(own * (1 + TIE) >= high > low * (1 + TIE) for own, (low, _, high) in pairs),
        "median": f"× {np.median(ratios):.3g}",
        "at most": f"× {max(ratios):.3g}",
        "loss above MLE*, at most": f"{max(cell.loss[name] - cell.loss['MLE*'] for cell in cells):.3g}",
    }


def summary(cells: Sequence[Cell], runs: int) -> Section:
    """Compare the three constrained estimators."""
    inverted = max(cell.mse["Inv"] / cell.mse["MLE*"] for cell in cells)
    unlikely, worst = sum(not cell.likeliest for cell in cells), sum(cell.mle_is_worst for cell in cells)
    missed = [f"InvN or InvP is likelier than MLE* in {unlikely} cells"] if unlikely else []
    missed += [f"MLE* is the worst of the three in {worst} cells"] if worst else []
    below = (
        f"{len(cells)} cells, {runs} repetitions each. The MSE of Inv is up to {inverted:.3g} times "
        "that of MLE*."
    )
    return Section(ABOUT, [extremes(cells, name) for name in COMPARED], below, missed)


def poster(runs: int = RUNS) -> Section:
    """Simulate the grid."""
    grid = itertools.product(REPORTS, VALUES, EXPONENTS, EPSILONS)
    return summary([run_cell(*cell, runs) for cell in grid], runs)


CASES = {"the MLE* poster": poster}
