"""MLE* compared with multi-freq-ldpy's iterative Bayesian update (IBU): time, and distance to the optimum."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bench.aggregator.results import ResultRow
from bench.comparison.parts.estimation import krr_optimum
from bench.comparison.peer_environment import PYTHON
from bench.comparison.report.figure import Figure, ResultsPart, Table
from bench.comparison.timing.contestant import Contestant
from bench.comparison.timing.rounds import Job, Scale
from bench.comparison.timing.timings import Time, times
from bench.estimators.populations import report_counts, zipf_shares
from deniable.estimators.mechanisms.krr import KRR

REPORTS = 1_000_000
SEED = 1
ABOUT = (
    "k-RR: 1,000,000 clients draw values from a Zipf distribution (exponent 1); IBU makes at most 10,000 "
    "steps, or stops after one in which no frequency moves by 1e-12, as multi-freq-ldpy's aggregators do."
)
NOTES = (
    "MLE* is a closed form for k-RR only; multi-freq-ldpy's IBU takes any channel as a matrix, K² floats. "
    "Building the matrix and compiling the function are not timed.",
    "`below the optimum` is an upper bound by duality, for any estimate; `L1 from the optimum` is the "
    "distance from a solution of the optimality conditions by bisection, not from MLE*.",
    "The most likely distribution need not be the closest to the truth: IBU that runs out of steps is still "
    "drawn to its uniform start, which is closer to the truth here, where counts carry little information on "
    "most values: see "
    '`L1 from the truth`. Ours has IBU, too: `estimator="ibu"`, '
    "K operations a step instead of 2 K².",
    "IBU has no standard errors, intervals or significance; `estimate` is the time with ours.",
)


class LikelihoodCase(NamedTuple):
    """k-RR with this many values; quick: also measured in the quick run."""

    k: int
    epsilon: float
    quick: bool = True

    @property
    def name(self) -> str:
        """Name in the results."""
        return f"MLE*, K = {self.k:,}, epsilon {self.epsilon:g}"


CASES = (
    LikelihoodCase(100, 4.0),
    LikelihoodCase(100, 2.0),
    LikelihoodCase(500, 2.0, quick=False),
    LikelihoodCase(1000, 2.0, quick=False),
    LikelihoodCase(3000, 2.0, quick=False),
)


class Simulated(NamedTuple):
    """Frequencies (k,) of the clients' values, and counts (k,) of their reports."""

    truth: NDArray[np.float64]
    counts: NDArray[np.int64]


def simulate(mechanism: KRR, reports: int) -> Simulated:
    """Zipf values of this many clients, and their reports by k-RR; the same in every run."""
    rng = np.random.default_rng([SEED, mechanism.k])
    held = rng.multinomial(reports, zipf_shares(mechanism.k, 1.0))
    return Simulated(held / reports, report_counts(rng, held, mechanism))


def measure(scale: Scale) -> ResultsPart:
    """Measure every case; slow ones only in the full run."""
    cases = [case for case in CASES if case.quick or not scale.quick]
    with (
        TemporaryDirectory() as folder,
        Contestant("ours.estimation_runner") as ours,
        Contestant("peers.ibu_runner", str(PYTHON)) as peer,
    ):
        measured = [_measure(case, Path(folder), ours, peer, scale) for case in cases]
    return ResultsPart(
        "MLE*",
        ABOUT,
        [figure for figure, _ in measured],
        [Table("k-RR: MLE* and IBU", [row for _, rows in measured for row in rows])],
        NOTES,
    )


def _measure(
    case: LikelihoodCase, folder: Path, ours: Contestant, peer: Contestant, scale: Scale
) -> tuple[Figure, list[ResultRow]]:
    mechanism = KRR.from_epsilon(case.k, case.epsilon)
    simulated = simulate(mechanism, REPORTS)
    path = folder / f"{case.k}-{case.epsilon}.npy"
    np.save(path, simulated.counts)
    asked = {"path": str(path), "epsilon": case.epsilon}
    jobs = [
        Job(ours, "MLE*", asked),
        Job(peer, "IBU", {"path": str(path), "p": mechanism.p, "q": mechanism.q}, "any channel, iterative"),
        Job(ours, "estimate", asked, "MLE* with errors, intervals, significance"),
        Job(ours, "IBU", asked, "stops by the L1 length of a step"),
    ]
    found = times(jobs, scale)
    mine, theirs = (each.cpu_seconds * 1000 for each in found[:2])
    figure = Figure(case.name, "ms", mine, peer.library, theirs)
    return figure, _rows(case, mechanism, simulated, found)


def _rows(
    case: LikelihoodCase, mechanism: KRR, simulated: Simulated, found: Sequence[Time]
) -> list[ResultRow]:
    best = krr_optimum.optimum(simulated.counts, mechanism)
    rows: list[ResultRow] = []
    for time in found:
        contestant, frequency = time.job.contestant, np.array(cast("list[float]", time.result))
        rows.append(
            {
                "K, epsilon": f"{case.k:,}, {case.epsilon:g}",
                "library": f"{contestant.library} {contestant.version}",
                "job": time.job.name,
                "ms": time.cpu_seconds * 1000,
                "rounds": time.rounds,
                "below the optimum, nats a report": krr_optimum.shortfall(
                    frequency, best, simulated.counts, mechanism
                ),
                "L1 from the optimum": krr_optimum.distance(frequency, best),
                "L1 from the truth": krr_optimum.distance(frequency, simulated.truth),
                "does otherwise": time.job.says,
            }
        )
    return rows
