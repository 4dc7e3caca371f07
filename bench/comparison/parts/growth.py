"""Growth of time and memory with each size that a deployment chooses, up to a hundredfold."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from bench.aggregator.results import ResultRow
from bench.comparison.report.exponent import Exponent
from bench.comparison.report.figure import Line, ResultsPart, Table
from bench.comparison.timing.contestant import Contestant
from bench.comparison.timing.rounds import Scale

TIMES = (1, 10, 100)
ROUND_SECONDS = 0.3  # processor time of a round, or one job if that takes longer
ROUNDS = 5
SLACK = 0.15  # tolerance on an expected exponent, for logarithmic factors and caches
ABOUT = (
    "Each size alone, ten and a hundred times as large. Processor time is the median of rounds in a child on "
    "one core. Memory is the peak memory of Python and numpy for a job without its input, traced in a "
    "separate run (tracemalloc); it is not the resident memory of a worker, which `bench.aggregator.memory` "
    "measures beside a broker. The exponent is the slope of a least-squares line through the logarithms, and "
    "in brackets that of each step: 0 is constant, 1 is linear. Packs are of 10,000 reports, epsilon of k-RR "
    "is 2, RAPPOR has 128 bits and 8 cohorts; but where collections grow, packs are of 100 reports, of 16 "
    "cohorts; and where partitions grow, k-RR has 10,000 values."
)


class Growth(NamedTuple):
    """A job and one of its sizes, which grows.

    Parameters
    ----------
    axis : name of the size.
    what : name of the job in the results.
    job : name of the job in `growth_runner`.
    base : smallest size.
    expected : expected growth of time and memory, in words.
    time, memory : largest exponents consistent with that.
    """

    axis: str
    what: str
    job: str
    base: int
    expected: str
    time: float
    memory: float


VALUES, REPORTS, COHORTS = "values K", "reports N", "cohorts"
CANDIDATES, COLLECTIONS, PARTITIONS = "candidates", "collections", "partitions"
RANDOMIZING = "constant, but for the bytes of a report: 4 instead of 2 above 65,536 values"
COUNTING = "at most K, the counters that a pack is added to, until touching single ones is cheaper; memory K"
VALUES_AT_ONCE = "N; memory at most N, what is remembered of the values until they are randomized"
SMALLER_PACKS = (
    "at most cohorts, once a pack costs more than its reports, which are fewer; memory at most too"
)
SCREENED = "at most candidates, most of which are screened, whose bits are known; memory too"
HASHED = "candidates, each of which is hashed; memory too"
SPREAD = "constant, but for what caches hold; memory at most collections, for their counters"
STORED = "at most collections, for a row of each one's cohorts; memory too"
MERGED = "at most partitions, beside an estimate that does not grow; memory too"
GROWTHS = (
    Growth(VALUES, "randomize 100,000", "randomize values", 10_000, RANDOMIZING, 0, 0),
    Growth(VALUES, "count 100,000", "count values", 10_000, COUNTING, 1, 1),
    Growth(VALUES, "MLE* with errors", "estimate values", 10_000, "K log K, for sorting; memory K", 1, 1),
    Growth(REPORTS, "k-RR, value to estimate", "k-RR reports", 100_000, VALUES_AT_ONCE, 1, 1),
    Growth(REPORTS, "RAPPOR, value to estimate", "RAPPOR reports", 100_000, VALUES_AT_ONCE, 1, 1),
    Growth(COHORTS, "count 100,000", "count cohorts", 8, SMALLER_PACKS, 1, 1),
    Growth(COHORTS, "decode, 100 candidates", "decode cohorts", 8, "cohorts: bits; memory too", 1, 1),
    Growth(CANDIDATES, "decode, 8 cohorts", "decode candidates", 1_000, SCREENED, 1, 1),
    Growth(CANDIDATES, "decode new ones", "decode new candidates", 1_000, HASHED, 1, 1),
    Growth(COLLECTIONS, "count 1,600 packs", "count collections", 1, SPREAD, 0, 1),
    Growth(COLLECTIONS, "count, and a checkpoint", "store collections", 1, STORED, 1, 1),
    Growth(PARTITIONS, "merge a window", "merge partitions", 1, "partitions; memory too", 1, 1),
    Growth(PARTITIONS, "merge and estimate", "estimate partitions", 1, MERGED, 1, 1),
)


def measure(scale: Scale) -> ResultsPart:
    """Measure all sizes; the quick cut measures none, because they have no goals."""
    if scale.quick:
        return ResultsPart("Growth", "Growth has no goal, so only the full `make bench` measures it.")
    with Contestant("ours.growth_runner") as child:
        lines = [_line(child, growth) for growth in GROWTHS]
    pairs = list(zip(GROWTHS, lines, strict=True))
    times = [
        _row(each, line, "ms", [1000 * s for s in line.seconds], line.time_exponent) for each, line in pairs
    ]
    memory = [_row(each, line, "MiB", line.mebibytes, line.memory_exponent) for each, line in pairs]
    tables = [Table("Processor time as a size grows", times), Table("Memory as a size grows", memory)]
    return ResultsPart("Growth", ABOUT, tables=tables, notes=steeper(lines), lines=lines)


def steeper(lines: Sequence[Line]) -> list[str]:
    """Return a note for each line that grows faster than expected; lines are in the order of GROWTHS."""
    found = [
        f"{line.axis}, {line.what}: {kind} grows by the power {measured}, not by {expected:g} or less."
        for growth, line in zip(GROWTHS, lines, strict=True)
        for kind, measured, expected in (
            ("time", line.time_exponent, growth.time),
            ("memory", line.memory_exponent, growth.memory),
        )
        if measured.value > expected + SLACK
    ]
    return found or [f"Nothing grows faster than expected: no exponent is more than {SLACK} above it."]


def _line(child: Contestant, growth: Growth) -> Line:
    sizes = [growth.base * times for times in TIMES]
    seconds = [_seconds(child, growth.job, size) for size in sizes]
    mebibytes = [_mebibytes(child, growth.job, size) for size in sizes]
    return Line(growth.axis, growth.what, sizes, seconds, mebibytes)


def _seconds(child: Contestant, job: str, size: int) -> float:
    """Return the processor time of one job, seconds, after a warm-up."""
    child.prepare(job, 1, size=size)
    child.run()
    once = child.run().cpu_seconds
    count = max(1, round(ROUND_SECONDS / max(once, 1e-6)))
    child.prepare(job, count, size=size)
    return median(child.run().cpu_seconds / count for _ in range(ROUNDS))


def _mebibytes(child: Contestant, job: str, size: int) -> float:
    child.prepare(job, 1, size=size, traced=True)
    return float(str(child.run().result)) / 2**20


def _row(growth: Growth, line: Line, unit: str, values: Sequence[float], exponent: Exponent) -> ResultRow:
    at = {f"x{times}, {unit}": value for times, value in zip(TIMES, values, strict=True)}
    sizes = ", ".join(f"{size:,}" for size in line.sizes)
    shown = {"exponent": str(exponent), "expected": growth.expected}
    return {"size": line.axis, "job": line.what, "sizes": sizes, **at, **shown}
