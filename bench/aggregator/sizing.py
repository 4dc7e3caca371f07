"""The tables of docs/sizing.md, from the results of the aggregator's benchmarks."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.sections import FOLDER, ROOT, ResultRow, number, read, rows_of, table

PAGE = ROOT / "docs" / "sizing.md"
FILE, CHAOS = FOLDER / "aggregator.md", FOLDER / "chaos.json"
#: Faults of workers while the broker is reachable.
WORKER_FAULTS = ("kill-9", "sigterm", "zombie", "scale-1-3-1", "checkpoint-kill", "checkpoint-pause")

Found = Mapping[str, Sequence[Mapping[str, str]]]

RATES = (10_000, 100_000, 1_000_000, 10_000_000)
USED = 0.5  # share of a core that a worker may need at peak load
PARTITIONS_PER_WORKER = 2
DAY_SECONDS = 86_400

#: The example: clients that each report once per window, to one RAPPOR collection.
CLIENTS, WINDOW_SECONDS, GRACE_SECONDS, RETENTION_SECONDS = 5_000_000, 60, 30, 3600
PACK_REPORTS, KEPT_DAYS, REPLICAS = 100, 7, 3
EXAMPLE = "RAPPOR, 8 cohorts of 128 bits"


def measured(file: Path = FILE) -> Found:
    """Rows of each section."""
    return {name: rows_of(file, name) for name in read(file)[1]}


def workers_for(reports_per_second: float, reports_per_cpu_second: float) -> int:
    """Workers, one core each, for which this rate is half their capacity."""
    return math.ceil(reports_per_second / (reports_per_cpu_second * USED))


def workers(found: Found) -> list[ResultRow]:
    """Workers by rate, for one RAPPOR collection, by reports per pack."""
    counted = _rappor(found)
    return [
        {
            "reports/s at the peak": rate,
            **{
                f"packs of {pack:,}": workers_for(rate, number(row["reports a CPU second"]))
                for pack, row in counted.items()
            },
        }
        for rate in RATES
    ]


def example(found: Found) -> list[ResultRow]:
    """Requirements of the example, one line per quantity."""
    rate = CLIENTS / WINDOW_SECONDS
    row = _rappor(found)[PACK_REPORTS]
    needed = workers_for(rate, number(row["reports a CPU second"]))
    (memory,) = (one for one in found["memory"] if one["collection"] == EXAMPLE)
    windows = math.ceil((WINDOW_SECONDS + GRACE_SECONDS + RETENTION_SECONDS) / WINDOW_SECONDS)
    counts = number(memory["KiB a collection and window"]) * windows / 1024
    open_windows = math.ceil((WINDOW_SECONDS + GRACE_SECONDS) / WINDOW_SECONDS)
    ids = CLIENTS / PACK_REPORTS * open_windows * number(found["ids"][0]["bytes an id"]) / 2**20
    log = rate * DAY_SECONDS * number(row["bytes a report in the log"]) / 2**30
    lines: dict[str, str] = {
        "reports/s": f"{rate:,.0f}",
        "packs/s": f"{rate / PACK_REPORTS:,.0f}",
        "workers": str(needed),
        "partitions": f"{PARTITIONS_PER_WORKER * needed} to {2 * PARTITIONS_PER_WORKER * needed}",
        "windows kept": str(windows),
        "counts, MiB in all": f"{counts:.0f}",
        "ids, MiB in all": f"{ids:.1f}",
        "log a day, GiB": f"{log:,.0f}",
        f"log of {KEPT_DAYS} days, {REPLICAS} replicas, GiB": f"{log * KEPT_DAYS * REPLICAS:,.0f}",
    }
    return [{"quantity": name, "figure": figure} for name, figure in lines.items()]


def _rappor(found: Found) -> dict[int, Mapping[str, str]]:
    """Measured throughput for one RAPPOR collection, by reports per pack."""
    rows = (row for row in found["counting"] if row["mechanism"] == "RAPPOR, 128 bits")
    return {int(number(row["reports a pack"])): row for row in rows if row["collections"] == "1"}


def gaps(_: Found) -> list[ResultRow]:
    """Longest gap in counting under each fault of workers, from `make chaos`."""
    runs = json.loads(CHAOS.read_text(encoding="utf-8"))
    by_fault = {fault: [run for run in runs if run["fault"] == fault] for fault in WORKER_FAULTS}
    return [
        {
            "fault": fault,
            "runs": len(found),
            "nothing counted, s": f"{max(run['longest_gap'] for run in found):.1f}",
            "of one partition, s": f"{max(run['partition_gap'] for run in found):.1f}",
        }
        for fault, found in by_fault.items()
    ]


DERIVED: dict[str, Callable[[Found], list[ResultRow]]] = {
    "workers": workers,
    "example": example,
    "gaps": gaps,
}


def with_tables(text: str, found: Found) -> str:
    """The page with every table regenerated, each below a line `<!-- table: NAME -->`."""

    def made(match: re.Match[str]) -> str:
        name = match[1]
        rows = DERIVED[name](found) if name in DERIVED else found[name]
        return f"<!-- table: {name} -->\n{table(rows)}"

    names = "|".join([*DERIVED, *found])
    return re.sub(rf"<!-- table: ({names}) -->\n(?:\|.*\n)*", made, text)


def main() -> None:
    """Write the page's tables anew."""
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), measured()), encoding="utf-8")
