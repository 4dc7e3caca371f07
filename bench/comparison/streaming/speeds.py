"""Logs, their readers, the speed of each reader, and what speeds are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from bench.sections import ResultRow, shown

READING = "aiokafka, reading alone"
HELD = "ours, 1 worker, held on one core"


class Size(NamedTuple):
    """A log of this many packs of this many reports, and its readers.

    Parameters
    ----------
    reports, packs : of the log.
    share : goal of one worker as a share of reading alone.
    peers : other libraries that read it.
    goal : reports/s of one worker; None without a goal.
    collections : over which a second log is spread, half as long; 0 for none.
    """

    reports: int
    packs: int
    share: float
    peers: Sequence[str] = ()
    goal: float | None = None
    collections: int = 0


#: So long that one worker counts for about ten seconds, and two for five; but a partition's window has at
#: most 4,000,000 packs (`window_packs`).
SIZES = (
    Size(1, 15_600_000, 0.5, peers=("confluent-kafka",)),
    Size(10, 14_000_000, 0.5),
    Size(100, 4_000_000, 0.5),
    Size(1000, 400_000, 0.6, ("bytewax", "quixstreams", "confluent-kafka"), 6_000_000, collections=100),
    Size(10_000, 60_000, 0.6, goal=12_000_000),
)
TWO_WORKERS = 1.9  # goal, times one worker
SPREAD_SHARE = 0.8  # goal of many collections, as a share of one
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
#: By name in the results: how many times its speed one worker must have.
RIVAL_GOALS = {"bytewax": 1.3, "quixstreams": 2.0}


@dataclass(frozen=True)
class Speed:
    """Figures of one reader for a log, over all runs.

    Parameters
    ----------
    reader : its name.
    runs : reports/s of each run.
    a_cpu_second : reports per second of the reader's processor time, median; 0 if nothing was measured.
    broker_cores : cores used by the broker meanwhile, median; None if not measured.
    says : differences from ours, or why there are no runs.
    version : of another library.
    seconds : timed seconds of the shortest run.
    """

    reader: str
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

    def row(self, one: float) -> ResultRow:
        """Row of the results' table; `one` is the speed of one worker of ours, 0 if unknown."""
        is_known = bool(self.runs)
        return {
            "reader": f"{self.reader} {self.version}".strip(),
            "reports/s": self.median or "",
            "least": min(self.runs, default=""),
            "most": max(self.runs, default=""),
            "one worker is, times": one / self.median if is_known and one else "",
            "runs": len(self.runs),
            "seconds of a run": f"{self.seconds:.1f}" if is_known else "",
            "reports a CPU second": self.a_cpu_second or "",
            "cores": f"{self.median / self.a_cpu_second:.2f}" if self.a_cpu_second else "",
            "broker's cores": "" if self.broker_cores is None else f"{self.broker_cores:.2f}",
            "what else": self.says,
        }


def missed(size: Size, speeds: Sequence[Speed]) -> list[str]:
    """What falls short of its goal, or could not be judged because one worker counted nothing."""
    done = {speed.reader: speed.median for speed in speeds if speed.runs}
    one = done.get(name_of(1))
    if one is None:
        return [f"not judged, since one worker counted nothing: {speeds[0].says}"]
    ratios = {
        f"one worker beside {READING}": (one, done.get(READING), size.share),
        "two workers beside one": (done.get(name_of(2)), one, TWO_WORKERS),
        f"{size.collections} collections beside one": (
            done.get(name_of(1, size.collections)) if size.collections else None,
            one,
            SPREAD_SHARE,
        ),
        **{f"one worker beside {name}": (one, done.get(name), goal) for name, goal in RIVAL_GOALS.items()},
    }
    found = [
        f"{name}: {shown(ours / other)} times, of {goal:g} asked"
        for name, (ours, other, goal) in ratios.items()
        if ours and other and ours < goal * other
    ]
    if size.goal and one < size.goal:
        found.append(f"one worker: {shown(one)} reports/s, of {shown(size.goal)} asked")
    return found


def name_of(workers: int, collections: int = 1) -> str:
    """Name of this many of our workers, and of collections if there are several."""
    spread = f", {collections} collections" if collections > 1 else ""
    return f"ours, {workers} worker{'s' if workers > 1 else ''}{spread}"
