"""MLE* compared with multi-freq-ldpy's iterative Bayesian update (IBU): time, and distance to the optimum."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bench.comparison import krr_optimum
from bench.comparison.timing.contestant import Contestant, ContestantError, opened
from bench.comparison.timing.rounds import Job, Timed, timed
from bench.estimators.populations import report_counts, zipf_shares
from bench.sections import ResultRow, Section
from deniable.estimators.mechanisms.krr import KRR

REPORTS = 1_000_000
SEED = 1
FIGURES = ("ms", "MLE* is, times", "below the optimum, nats a report", "L1 from it", "L1 from the truth")
#: Values and epsilon.
SETTINGS = ((100, 4.0), (100, 2.0), (1000, 2.0))
ABOUT = """\
From counts in memory to frequencies in memory. All sides get the same counts, simulated once, and the
same p and q, as our mechanisms realise them: 1,000,000 clients draw values from a Zipf distribution
(exponent 1). IBU makes at most 10,000 steps, or stops after one in which no frequency moves by 1e-12, as
multi-freq-ldpy's aggregators do. One core each, in turn; milliseconds of processor time of one estimate,
medians of the rounds.

- MLE* is a closed form for k-RR only; multi-freq-ldpy's IBU takes any channel as a matrix, K² floats.
  Building the matrix and compiling the function are not timed.
- `below the optimum` is an upper bound by duality, for any estimate; `L1 from the optimum` is the
  distance from a solution of the optimality conditions by bisection, not from MLE*.
- The most likely distribution need not be the closest to the truth: IBU that runs out of steps is still
  drawn to its uniform start, which is closer to the truth here, where counts carry little information on
  most values. Ours has IBU, too: `estimator="ibu"`, K operations a step instead of 2 K².
- IBU has no standard errors, intervals or significance; `estimate` is the time with ours."""


class Simulated(NamedTuple):
    """Frequencies (k,) of the clients' values, and counts (k,) of their reports."""

    truth: NDArray[np.float64]
    counts: NDArray[np.int64]


def simulate(mechanism: KRR, reports: int) -> Simulated:
    """Zipf values of this many clients, and their reports by k-RR; the same in every run."""
    rng = np.random.default_rng([SEED, mechanism.k])
    held = rng.multinomial(reports, zipf_shares(mechanism.k, 1.0))
    return Simulated(held / reports, report_counts(rng, held, mechanism))


def estimation() -> Section:
    """Measure every setting; ContestantError if our own jobs fail."""
    with (
        TemporaryDirectory() as folder,
        opened("ours.estimation_runner", "peers.multi_freq_ldpy_runner") as (ours, peer),
    ):
        rows = [row for setting in SETTINGS for row in _rows(*setting, Path(folder), ours, peer)]
    return Section(ABOUT, rows)


def _rows(k: int, epsilon: float, folder: Path, ours: Contestant, peer: Contestant) -> list[ResultRow]:
    mechanism = KRR.from_epsilon(k, epsilon)
    simulated, path = simulate(mechanism, REPORTS), folder / f"{k}-{epsilon}.npy"
    np.save(path, simulated.counts)
    asked = {"path": str(path), "epsilon": epsilon}
    found = timed(
        [
            Job(ours, "MLE*", asked),
            Job(ours, "estimate", asked, "MLE* with errors, intervals, significance"),
            Job(ours, "IBU", asked, "stops by the L1 length of a step"),
            Job(
                peer, "IBU", {"path": str(path), "p": mechanism.p, "q": mechanism.q}, "any channel, iterative"
            ),
        ]
    )
    if found[0].failed:
        raise ContestantError(found[0].failed)
    best = krr_optimum.optimum(simulated.counts, mechanism)
    return [
        {"K": k, "epsilon": f"{epsilon:g}", **_figures(each, mechanism, simulated, best, found[0])}
        for each in found
    ]


def _figures(
    found: Timed, mechanism: KRR, simulated: Simulated, best: NDArray[np.float64], mle: Timed
) -> ResultRow:
    contestant = found.job.contestant
    who = {"library": f"{contestant.library} {contestant.version}", "job": found.job.name}
    if found.failed:
        return {**who, **dict.fromkeys(FIGURES, ""), "does otherwise": found.failed}
    frequency = np.array(cast("list[float]", found.result))
    values = (
        found.cpu_seconds * 1000,
        found.cpu_seconds / mle.cpu_seconds,
        krr_optimum.shortfall(frequency, best, simulated.counts, mechanism),
        krr_optimum.distance(frequency, best),
        krr_optimum.distance(frequency, simulated.truth),
    )
    return {**who, **dict(zip(FIGURES, values, strict=True)), "does otherwise": found.job.says}


CASES = {"estimation": estimation}
