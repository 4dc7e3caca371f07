"""The comparison of the MLE* poster: squared error and likelihood of four estimators of k-RR on its grid.

Source: Pinzón et al., "Estimating the true distribution of data collected with randomized response"
(arXiv 2601.08603), "Experimental results".
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import report_counts, zipf_shares
from bench.sections import ResultRow, Section
from deniable.estimators.frequency.krr import inv, inv_n, inv_p, mle
from deniable.estimators.mechanisms.krr import KRR

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


SEED = 1
# Two figures within this share are a tie.
TIE = 1e-9

ESTIMATORS: dict[str, Callable[[NDArray[np.int64], KRR], NDArray[np.float64]]] = {
    "Inv": inv,
    "InvN": inv_n,
    "InvP": inv_p,
    "MLE*": mle,
}


@dataclass(frozen=True)
class Cell:
    """Means over the repetitions of one cell, by estimator.

    Parameters
    ----------
    reports, values, exponent, epsilon : N, K, Zipf exponent and epsilon.
    mse : mean squared error of one value's frequency.
    loss : negative log-likelihood per report, nats.
    likeliest : True when in every repetition no distribution had a lower loss than MLE*'s.
    """

    reports: int
    values: int
    exponent: float
    epsilon: float
    mse: dict[str, float]
    loss: dict[str, float]
    likeliest: bool

    @property
    def mle_is_worst(self) -> bool:
        """Whether the MSE of MLE* exceeds that of InvN and that of InvP."""
        return self.mse["MLE*"] > max(self.mse["InvN"], self.mse["InvP"]) * (1 + TIE)


def run_cell(reports: int, values: int, exponent: float, epsilon: float, repetitions: int) -> Cell:
    """Simulate one cell; reproducible.

    In each repetition N clients draw their values from the Zipf distribution, k-RR randomizes them, and all
    estimators see the same counts. The truth is the clients' own frequency.
    """
    rng = np.random.default_rng([SEED, reports, values, round(100 * exponent), round(epsilon)])
    mechanism = KRR.from_epsilon(values, epsilon)
    shares = zipf_shares(values, exponent)
    errors, losses = np.empty((2, repetitions, len(ESTIMATORS)))
    for repetition in range(repetitions):
        truth = rng.multinomial(reports, shares)
        counts = report_counts(rng, truth, mechanism)
        for column, estimator in enumerate(ESTIMATORS.values()):
            frequency = estimator(counts, mechanism)
            errors[repetition, column] = np.mean((frequency - truth / reports) ** 2)
            losses[repetition, column] = _loss(counts, frequency, mechanism)
    distributions = losses[:, 1:]
    likeliest = bool((distributions[:, -1] <= distributions.min(axis=1) * (1 + TIE)).all())
    mse, loss = (
        dict(zip(ESTIMATORS, table.mean(axis=0).tolist(), strict=True)) for table in (errors, losses)
    )
    return Cell(reports, values, exponent, epsilon, mse, loss, likeliest)


def _loss(counts: NDArray[np.int64], frequency: NDArray[np.float64], mechanism: KRR) -> float:
    """Negative log-likelihood per report, nats; for Inv too, whose rates are the shares of the reports."""
    seen = np.flatnonzero(counts)
    rates = mechanism.q + mechanism.contrast * frequency[seen]
    return float(-(counts[seen] @ np.log(rates)) / counts.sum())


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
