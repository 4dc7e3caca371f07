"""Coverage of the 95 % intervals of single values: exact, on a grid of populations and near a share of 0.

Nothing is simulated. The count of a value that n of N clients hold is Binomial(n, p) + Binomial(N - n, q),
and whether the interval holds n / N depends on that count alone: the coverage is a sum over its distribution.
That is so for k-RR, longitudinal or not, and for each bit of one-hot and k-hot RAPPOR.
Intervals around a constrained point estimate are wider than these, never narrower.
"""

import math
from collections.abc import Iterable
from functools import partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from bench.estimators.populations import round_to_counts, zipf_shares
from bench.sections import ResultRow, Section, percent
from deniable.estimators.frequency.intervals.acceptance import LEVEL
from deniable.estimators.frequency.inversion import Inversion
from deniable.estimators.mechanisms.krr import KRR
from deniable.estimators.mechanisms.longitudinal_krr import LongitudinalKRR
from deniable.estimators.mechanisms.rappor_hot import HotRappor

REPORTS = (100, 1000, 10_000, 1_000_000)
VALUES = (10, 100, 1000)
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
EXPONENTS = (0.01, 1.3, 2.5)
#: True shares near 0, in standard errors of a value that nobody holds.
DISTANCES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
#: k-RR with few to many false reports of each value: N, k and epsilon.
SETTINGS = (
    (1000, 10_000, 4.0), (10_000, 10_000, 4.0), (1000, 1000, 1.0), (10_000, 1000, 7.0), (10_000, 1000, 1.0),
    (100_000, 1000, 2.0), (1_000_000, 1000, 1.0), (1_000_000, 10, 1.0),
)  # fmt: skip
HOT = 3  # values that one client of k-hot RAPPOR has
#: Mechanisms, and epsilons of a report.
MECHANISMS = {
    "k-rr": EPSILONS,
    "k-rr-longitudinal": (1.0, 2.0),
    "rappor-one-hot": (1.0, 2.0),
    "rappor-k-hot": (1.0, 2.0),
}
LEAST_COVERED = 0.949
# Counts further than this many standard deviations from their mean (total probability 1e-14) are left out.
REACH = 8.0


def log_factorials(most: int) -> NDArray[np.float64]:
    """Natural logarithms of n! for n = 0 to most, float64 (most + 1,)."""
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, most + 1)))])


def binomial(
    trials: int, probability: float, factorials: NDArray[np.float64]
) -> tuple[int, NDArray[np.float64]]:
    """Return the first count within reach of the mean, and the probabilities from there on."""
    reach = REACH * math.sqrt(trials * probability * (1 - probability)) + 20
    first = max(0, math.floor(trials * probability - reach))
    hits = np.arange(first, min(trials, math.ceil(trials * probability + reach)) + 1)
    ways = factorials[trials] - factorials[hits] - factorials[trials - hits]
    return first, np.exp(ways + hits * math.log(probability) + (trials - hits) * math.log1p(-probability))


def coverage(
    holders: int,
    reports: int,
    channel: Inversion,
    factorials: NDArray[np.float64],
    level: float = LEVEL,
) -> float:
    """Probability that the interval of a value with this many holders has holders / N."""
    first_true, true = binomial(holders, channel.hit, factorials)
    first_lie, lie = binomial(reports - holders, channel.miss, factorials)
    probability = np.convolve(true, lie)
    counts = first_true + first_lie + np.arange(len(probability))
    low, high = channel.score_interval(channel.frequency(counts / reports), reports, level)
    frequency = holders / reports
    return float(probability[(low <= frequency) & (frequency <= high)].sum())


def cell(mechanism: str, reports: int, values: int, epsilon: float, exponent: float) -> tuple[float, float]:
    """Coverage on average over all values of a population, and of the worst one.

    A client of k-hot RAPPOR holds up to HOT values.
    """
    held = HOT if mechanism == "rappor-k-hot" else 1
    truth = np.minimum(round_to_counts(zipf_shares(values, exponent), held * reports), reports)
    channel, factorials = channel_of(mechanism, values, epsilon), log_factorials(reports)
    distinct, times = np.unique(truth, return_counts=True)
    covered = np.array([coverage(holders, reports, channel, factorials) for holders in distinct.tolist()])
    return float(covered @ times / len(truth)), float(covered.min())


def channel_of(mechanism: str, values: int, epsilon: float) -> Inversion:
    """The channel of one value, where a report costs epsilon: RAPPOR's without a permanent step.

    That step changes p* and q* alone. All reports of a client of longitudinal k-RR cost twice epsilon.
    """
    match mechanism:
        case "k-rr":
            return Inversion.of_symmetric(KRR.from_epsilon(values, epsilon))
        case "k-rr-longitudinal":
            return Inversion.of_symmetric(LongitudinalKRR.from_epsilons(values, 2 * epsilon, epsilon))
    hot = 1 if mechanism == "rappor-one-hot" else HOT
    q = 1 / (1 + math.exp(-epsilon / (2 * hot)))
    return Inversion.of_bit(HotRappor.from_probabilities(values, hot, 0.0, 1 - q, q))


def near_the_ends(reports: int, values: int, epsilon: float) -> list[float]:
    """Coverage of k-RR at each of DISTANCES, in whole holders, and of a value that everybody holds."""
    channel, factorials = channel_of("k-rr", values, epsilon), log_factorials(reports)
    (error,) = channel.std_error(np.zeros(1), reports)
    holders = [min(reports, round(distance * error * reports)) for distance in DISTANCES]
    return [coverage(held, reports, channel, factorials) for held in [*holders, reports]]


def populations(mechanism: str, numbers: Iterable[int] = REPORTS) -> Section:
    """Judge the values of skewed and even populations."""
    rows, means, worst = list[ResultRow](), list[float](), 1.0
    for reports, values, epsilon in product(numbers, VALUES, MECHANISMS[mechanism]):
        row: dict[str, float | str] = {"N": reports, "K": values, "epsilon": epsilon}
        for exponent in EXPONENTS:
            mean, least = cell(mechanism, reports, values, epsilon, exponent)
            row[f"Zipf {exponent:g}"] = f"{percent(mean)}, worst {percent(least)}"
            means.append(mean)
            worst = min(worst, least)
        rows.append(row)
    below = f"{percent(min(means))} to {percent(max(means))} % on average, worst value {percent(worst, 2)} %."
    return judged("Percent covered, of all values and of the worst one; exact.", rows, below, worst)


def ends() -> Section:
    """Judge shares near 0, and a share of 1."""
    rows, least = list[ResultRow](), 1.0
    for reports, values, epsilon in SETTINGS:
        covered = near_the_ends(reports, values, epsilon)
        least = min(least, *covered)
        false = reports * channel_of("k-rr", values, epsilon).miss
        heads = [*(f"{distance:g}" for distance in DISTANCES), "all"]
        row: dict[str, float | str] = {"N": reports, "K": values, "epsilon": epsilon, "false reports": false}
        rows.append(row | dict(zip(heads, map(percent, covered), strict=True)))
    about = (
        "Percent covered of k-RR, by the true share in standard errors from 0, and where all reports are of "
        "one value. `false reports` are those expected of each value."
    )
    return judged(about, rows, "", least)


def judged(about: str, rows: list[ResultRow], below: str, worst: float) -> Section:
    """Miss if the worst value is covered below 94.9 %."""
    return Section(about, rows, below, [f"a value: {percent(worst)} %"] if worst < LEAST_COVERED else [])


CASES = {**{name: partial(populations, name) for name in MECHANISMS}, "shares near 0 and 1": ends}
