"""One cell of the poster's comparison: four estimators of k-RR on the same simulated counts."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import report_counts, zipf_shares
from deniable.estimators.frequency.krr import inv, inv_n, inv_p, mle
from deniable.estimators.mechanisms.krr import KRR

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
