"""What is counted of the runs of a cell, and when a cell is judged to fail.

Rule: the limits are 93 % for each fixed value, and 5 % for false discoveries and for families of intervals of
which one misses. The worst of many values, and of many cells, is low by chance, so a cell is judged in two
stages. A population with a figure whose misses are unlikely at 5 %, see `is_suspicious`, gets up to four
times more runs, of fresh noise. There only its suspicious values count, and it is FAILED if misses as many
have a probability below .01 / (number of these values) where the limit is kept. So a cell just at its limit
is called failed in 1 % at most, and one that covers 95 % hardly ever. Fresh runs end early once every
suspicious value misses at most 5 % of them. They are left out where the first ones leave no doubt (1e-6).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc

from deniable.estimators.arrays import FloatArray

#: Largest share of runs that may miss a fixed value, and that may have false discoveries or a missed family.
MOST_MISSED, MOST_FALSE = 0.07, 0.05
NOMINAL = 0.05
REFUTED, BEYOND_DOUBT = 0.01, 1e-6
ROUNDING = 1e-9
#: How many times more runs a suspicious population gets, and how far apart the seeds of these are.
MORE_RUNS, BATCH_SEEDS = 4, 10_000_000_000


class Verdict(StrEnum):
    """Of a figure of a cell: its limit is kept; most intervals say nothing; or the limit is not kept."""

    HELD = "held"
    WIDE = "wide"
    FAILED = "FAILED"


@dataclass(frozen=True)
class Measured:
    """What one run says of one figure.

    Parameters
    ----------
    missed : float64 (n,), of each fixed value: 1 where its interval misses it, 0 otherwise. Of false
        discoveries (1,), their share among all; of a family (1,), whether one of its intervals misses.
    wide : bool (n,), where the interval is the whole range, or none is stated.
    limit : largest expected value of `missed`.
    """

    missed: FloatArray
    wide: NDArray[np.bool_]
    limit: float = MOST_MISSED


#: One run: draws noise, and returns what is measured by the name of its figure.
Run = Callable[[np.random.Generator], Mapping[str, Measured]]


@dataclass(frozen=True)
class Judged:
    """One figure of a cell, over its populations.

    Parameters
    ----------
    population : the one whose value is the worst.
    runs : that `worst` is of; 0 if it is exact.
    worst : share of runs that miss the worst value, of noise other than that which chose it.
    mean : mean share missed, over all values and populations.
    wide : share of intervals that are the whole range, or not stated.
    verdict : see `Verdict`.
    """

    population: str
    runs: int
    worst: float
    mean: float
    wide: float
    verdict: Verdict


@dataclass(frozen=True)
class Tally:
    """Sums of one figure: misses in even and odd runs, float64 (2, n), and the share of wide intervals."""

    missed: FloatArray
    wide: float
    limit: float


def simulate(run: Run, runs: int, seed: int) -> dict[str, Tally]:
    """Add up what the runs measure, by figure."""
    rng = np.random.default_rng(seed)
    found: dict[str, list[Measured]] = {}
    for _ in range(runs):
        for name, measured in run(rng).items():
            found.setdefault(name, []).append(measured)
    return {name: _added(measured) for name, measured in found.items()}


def _added(measured: list[Measured]) -> Tally:
    missed = np.array([each.missed for each in measured])
    halves = np.array([missed[::2].sum(axis=0), missed[1::2].sum(axis=0)])
    wide = float(np.mean([each.wide.mean() for each in measured]))
    return Tally(halves, wide, measured[0].limit)


def judge(populations: Mapping[str, Run], runs: int, seed: int) -> dict[str, Judged]:
    """Simulate a cell, and judge each of its figures over all populations."""
    found: dict[str, list[Judged]] = {}
    for number, (population, run) in enumerate(populations.items()):
        for name, one in _judge_population(population, run, runs, seed + 2 * number).items():
            found.setdefault(name, []).append(one)
    return {name: joined(each) for name, each in found.items()}


def _judge_population(population: str, run: Run, runs: int, seed: int) -> dict[str, Judged]:
    first = simulate(run, runs, seed)
    suspects = {name: is_suspicious(tally.missed.sum(axis=0), runs) for name, tally in first.items()}
    count, again = _missed_again(run, runs, seed + 1, first, suspects)
    found = {}
    for name, tally in first.items():
        mean = float(tally.missed.sum(axis=0).mean() / runs)
        verdict = Verdict.WIDE if tally.wide > 0.5 else Verdict.HELD
        worst, of = _worst_of_other_half(tally.missed, runs), runs
        if name in again:
            worst, of = float(again[name].max() / count), count
            if is_refuted(again[name], count, tally.limit, REFUTED):
                verdict = Verdict.FAILED
        found[name] = Judged(population, of, worst, mean, tally.wide, verdict)
    return found


def _missed_again(
    run: Run, runs: int, seed: int, first: Mapping[str, Tally], suspects: Mapping[str, NDArray[np.bool_]]
) -> tuple[int, dict[str, FloatArray]]:
    """Return the number of fresh runs, and the misses of suspicious values in them, by figure with some."""
    missed = {name: first[name].missed.sum(axis=0)[each] for name, each in suspects.items() if each.any()}
    if not missed or any(
        is_refuted(each, runs, first[name].limit, BEYOND_DOUBT) for name, each in missed.items()
    ):
        return runs, missed
    missed = {name: np.zeros_like(each) for name, each in missed.items()}
    for batch in range(1, MORE_RUNS + 1):
        tallies = simulate(run, runs, seed + BATCH_SEEDS * batch)
        for name in missed:
            missed[name] += tallies[name].missed.sum(axis=0)[suspects[name]]
        if all(each.max() <= NOMINAL * batch * runs for each in missed.values()):
            break
    return batch * runs, missed


def is_suspicious(missed: FloatArray, runs: int) -> NDArray[np.bool_]:
    """Whether so many misses, or more, are unlikely at the nominal rate, bool (n,).

    They have a probability below .15 / n, and below .05.
    """
    least = min(0.05, 0.15 / len(missed))
    suspicious: NDArray[np.bool_] = bdtrc(np.ceil(missed - ROUNDING) - 1, runs, NOMINAL) < least
    return suspicious


def is_refuted(missed: FloatArray, runs: int, limit: float, probability: float) -> bool:
    """Whether so many misses of one of the values, or more, are less probable than that at the limit."""
    tails = bdtrc(np.floor(missed + ROUNDING) - 1, runs, limit)
    return bool((tails < probability / len(missed)).any())


def _worst_of_other_half(missed: FloatArray, runs: int) -> float:
    """Choose the worst value in each half of the runs, and take its misses in the other half."""
    even, odd = missed
    return float(odd[even.argmax()] + even[odd.argmax()]) / runs


def joined(judged: list[Judged]) -> Judged:
    """Join populations: one that failed fails the cell, and a cell is wide if all of them are."""
    order = {Verdict.FAILED: 2, Verdict.HELD: 1, Verdict.WIDE: 0}
    worst = max(judged, key=lambda one: (order[one.verdict], one.worst))
    mean, wide = (float(np.mean([getattr(one, name) for one in judged])) for name in ("mean", "wide"))
    return Judged(worst.population, worst.runs, worst.worst, mean, wide, worst.verdict)
