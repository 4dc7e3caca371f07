"""Logs, their readers, and the speed of each reader."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from bench.aggregator.results import ResultRow

READING = "aiokafka, reading alone"
HELD = "ours, 1 worker, held on one core"


class Size(NamedTuple):
    """A log of this many packs of this many reports, and its readers.

    Parameters
    ----------
    reports, packs : of the log.
    runs : of each reader; the median counts.
    workers : numbers of our workers to measure.
    is_read_alone : whether a consumer that only reads the log is measured too.
    peers : other libraries that read it.
    goal : reports/s of one worker; None without a goal.
    share : goal of one worker as a share of reading alone; None without a goal.
    collections : over which a second log is spread, half as long; 0 for none.
    """

    reports: int
    packs: int
    runs: int
    workers: Sequence[int] = (1, 2)
    is_read_alone: bool = True
    peers: Sequence[str] = ()
    goal: float | None = None
    share: float | None = None
    collections: int = 0


#: So long that one worker counts for ten seconds and more, and two for five; but a partition's window has at
#: most 4,000,000 packs (`window_packs`).
FULL = (
    Size(1, 15_600_000, 3, peers=("confluent-kafka",), share=0.5),
    Size(10, 14_000_000, 3, share=0.5),
    Size(100, 4_000_000, 3, share=0.5),
    Size(
        1000,
        600_000,
        3,
        peers=("bytewax", "quixstreams", "confluent-kafka"),
        goal=6_000_000,
        share=0.6,
        collections=100,
    ),
    Size(10_000, 60_000, 3, goal=12_000_000, share=0.6),
)
QUICK = (
    Size(1000, 36_000, 1, workers=(1,), is_read_alone=False, goal=6_000_000),
    Size(10_000, 5000, 1, workers=(1,), is_read_alone=False, goal=12_000_000),
)
TWO_WORKERS = 1.9  # goal, times one worker
SPREAD_SHARE = 0.8  # goal of many collections, as a share of one
RIVAL_GOALS = {"bytewax": 1.3, "quixstreams": 2.0}
#: By distribution: program, name in the results, and differences from ours.
RIVALS = {
    "bytewax": (
        "peers.readers.bytewax_count",
        "bytewax",
        "no checksum, no duplicates; snapshots each second, output again after a crash",
    ),
    "quixstreams": (
        "peers.readers.quix_count",
        "quixstreams",
        "no checksum, no duplicates; exactly once, committed each second, by a second topic",
    ),
    "confluent-kafka": (
        "peers.readers.confluent_read",
        "librdkafka, reading alone",
        "counts nothing, stores nothing",
    ),
}


@dataclass(frozen=True)
class Speed:
    """Figures of one reader for a log, over all runs.

    Parameters
    ----------
    reader : its name.
    reports : of a pack.
    runs : reports/s of each run.
    a_cpu_second : reports per second of the reader's processor time, median; 0 if nothing was measured.
    broker_cores : cores used by the broker meanwhile, median; None if not measured.
    says : differences from ours, or why there are no runs.
    version : of another library.
    seconds : timed seconds of the shortest run.
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
        """Reports/s of the median run; 0 if nothing was measured."""
        return median(self.runs) if self.runs else 0.0

    @property
    def cores(self) -> float:
        """Cores used by the reader; 0 if nothing was measured."""
        return self.median / self.a_cpu_second if self.a_cpu_second else 0.0

    def row(self) -> ResultRow:
        """Row of the results' table."""
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


def name_of(workers: int, collections: int = 1) -> str:
    """Name of this many of our workers, and of collections if there are several."""
    spread = f", {collections} collections" if collections > 1 else ""
    return f"ours, {workers} worker{'s' if workers > 1 else ''}{spread}"
