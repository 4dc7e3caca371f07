"""Which logs are read, who reads them, and how fast each did."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from bench.aggregator.results import ResultRow

READING = "aiokafka, reading alone"
HELD = "ours, 1 worker, held on one core"


class Size(NamedTuple):
    """A log of so many packs of so many reports, and who reads it.

    Parameters
    ----------
    reports, packs : of the log.
    runs : of each reader; the median counts.
    workers : of ours, numbers of them.
    is_read_alone : whether a consumer that only reads it is measured beside them.
    peers : other libraries that count it too.
    goal : reports/s of one worker; None where none is stated.
    """

    reports: int
    packs: int
    runs: int
    workers: Sequence[int] = (1, 2)
    is_read_alone: bool = True
    peers: Sequence[str] = ()
    goal: float | None = None


FULL = (
    Size(1, 400_000, 3),
    Size(100, 500_000, 3),
    Size(1000, 120_000, 3, peers=("bytewax", "quixstreams"), goal=6_000_000),
    Size(10_000, 16_000, 3, goal=12_000_000),
)
QUICK = (
    Size(1000, 36_000, 1, workers=(1,), is_read_alone=False, goal=6_000_000),
    Size(10_000, 5000, 1, workers=(1,), is_read_alone=False, goal=12_000_000),
)
#: By distribution: program, name in the results, what it does otherwise.
RIVALS = {
    "bytewax": (
        "peers.bytewax_count",
        "bytewax",
        "no checksum, no duplicates; snapshots each second, output again after a crash",
    ),
    "quixstreams": (
        "peers.quix_count",
        "quixstreams",
        "no checksum, no duplicates; exactly once, committed each second, by a second topic",
    ),
}


@dataclass(frozen=True)
class Speed:
    """What some reader did with a log, all its runs.

    Parameters
    ----------
    reader : who.
    reports : of a pack.
    runs : reports/s of each run.
    a_cpu_second : reports for a second of the reader's processor time, median; 0 where nothing was measured.
    broker_cores : that the broker took meanwhile, median; None where it was not watched.
    says : what it does otherwise, or why there is nothing.
    version : of another library.
    seconds : that the shortest run was timed.
    """

    reader: str
    reports: int
    runs: Sequence[float]
    a_cpu_second: float = 0.0
    broker_cores: float | None = None
    says: str = ""
    version: str = ""
    seconds: float = 0.0

    @property
    def median(self) -> float:
        """Reports/s of the run in the middle; 0 where nothing was measured."""
        return median(self.runs) if self.runs else 0.0

    @property
    def cores(self) -> float:
        """That the reader took; 0 where nothing was measured."""
        return self.median / self.a_cpu_second if self.a_cpu_second else 0.0

    def row(self) -> ResultRow:
        """As it stands in the table."""
        return {
            "reports a pack": self.reports,
            "reader": f"{self.reader} {self.version}".strip(),
            "reports/s": self.median or "",
            "least": min(self.runs, default=""),
            "most": max(self.runs, default=""),
            "runs": len(self.runs),
            "seconds of a run": f"{self.seconds:.1f}" if self.runs else "",
            "reports a CPU second": self.a_cpu_second or "",
            "cores": f"{self.cores:.2f}" if self.runs else "",
            "broker's cores": "" if self.broker_cores is None else f"{self.broker_cores:.2f}",
            "what else": self.says,
        }


def name_of(workers: int) -> str:
    """How so many of our workers are called."""
    return f"ours, {workers} worker{'s' if workers > 1 else ''}"
