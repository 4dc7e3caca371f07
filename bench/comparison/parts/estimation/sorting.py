"""MLE* alone, up to the largest supported number of values, compared with sorting the same counts."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from bench.aggregator.results import ResultRow
from bench.comparison.parts.estimation import krr_optimum
from bench.comparison.parts.estimation.likelihood import simulate
from bench.comparison.report.figure import Figure, ResultsPart, Table
from bench.comparison.timing.contestant import Contestant
from bench.comparison.timing.rounds import Job, Scale
from bench.comparison.timing.timings import times
from deniable.estimators.frequency.krr import mle
from deniable.estimators.mechanisms.krr import KRR

EPSILON = 8.0
#: At most four times the time of numpy.argsort.
GOAL = 0.25
ABOUT = (
    "MLE* alone: epsilon 8; `numpy.argsort` of the same counts, by default or `stable`, whichever is faster, "
    "is no estimate but a measure of length."
)


class SortingCase(NamedTuple):
    """k-RR with this many values and reports, and the goal."""

    k: int
    reports: int
    goal: float | None = None

    @property
    def name(self) -> str:
        """Name in the results."""
        return f"MLE* beside sorting, K = {self.k:,}, {self.reports:,} reports"


CASES = (
    SortingCase(1000, 1_000_000),
    SortingCase(10_000, 1_000_000),
    SortingCase(100_000, 1_000_000),
    SortingCase(1_400_000, 1_000_000, GOAL),
    SortingCase(1_400_000, 10_000_000, GOAL),
)


def measure(scale: Scale) -> ResultsPart:
    """Measure every case."""
    with (
        TemporaryDirectory() as folder,
        Contestant("ours.estimation_runner") as ours,
        Contestant("peers.numpy_runner") as sorter,
    ):
        measured = [_measure(case, Path(folder), ours, sorter, scale) for case in CASES]
    return ResultsPart(
        "Sorting",
        ABOUT,
        [figure for figure, _ in measured],
        [Table("MLE* alone", [row for _, row in measured])],
        [
            "numpy sorts with the widest vectors that the processor has, and by the values' ties: the ratio "
            "differs from one machine and one array to the next. MLE* sorts the counts themselves, which is "
            "a part of its time; the rest are sums and products of whole arrays."
        ],
    )


def _measure(
    case: SortingCase, folder: Path, ours: Contestant, sorter: Contestant, scale: Scale
) -> tuple[Figure, ResultRow]:
    mechanism = KRR.from_epsilon(case.k, EPSILON)
    counts = simulate(mechanism, case.reports).counts
    path = folder / f"{case.k}-{case.reports}.npy"
    np.save(path, counts)
    jobs = [
        Job(ours, "MLE*", {"path": str(path), "epsilon": EPSILON, "returned": False}),
        Job(sorter, "argsort", {"path": str(path), "kind": None}),
        Job(sorter, "argsort", {"path": str(path), "kind": "stable"}),
    ]
    mine, by_default, stable = (each.cpu_seconds * 1000 for each in times(jobs, scale))
    reference = "numpy.argsort, stable" if stable < by_default else "numpy.argsort"
    row: ResultRow = {
        "K": case.k,
        "reports": case.reports,
        "MLE*, ms": mine,
        "numpy.argsort, ms": by_default,
        "stable, ms": stable,
        "below the optimum, nats a report": krr_optimum.bound(mle(counts, mechanism), counts, mechanism),
    }
    return Figure(case.name, "ms", mine, reference, min(by_default, stable), case.goal), row
