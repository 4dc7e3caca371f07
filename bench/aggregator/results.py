"""Results of the aggregator's benchmarks: `bench/results/aggregator.json`, and tables generated from it."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

FILE = Path(__file__).parents[1] / "results" / "aggregator.json"

ResultRow = Mapping[str, float | str]

#: Results of each part, in the order of the tables. Each is replaced when its benchmark runs again.
PARTS = {
    "counting": "One worker, a log that is full before it starts; `bench.aggregator.throughput`.",
    "in memory": "A worker's own work on packs that a fetch has brought, without Kafka; one core; "
    "`bench.aggregator.in_memory`.",
    "memory": "What collections add to a worker that owns all 4 partitions, one window each; "
    "`bench.aggregator.memory`.",
    "opening": "Opening a ledger of 10,000 rows of 128 counters each; `bench.aggregator.scale.opening`.",
    "ids": "Ids of packs, added one by one to one window; `bench.aggregator.scale.opening`.",
    "partitions": "Four workers, a pack a second to each partition; `bench.aggregator.scale.partitions`.",
    "delays": "One worker; from an event to the first estimate with it that a reader of committed records "
    "sees, `pack_seconds` included; `bench.comparison.delays`.",
    "collections": "One worker, windows of 10 s, a pack a second to each collection; "
    "`bench.aggregator.scale.collections`.",
    "candidates": "Estimating a window of RAPPOR, 8 cohorts of 128 bits; `bench.aggregator.candidates`.",
    "large domain": "k-RR of 1,400,000 values, estimated while it is counted; "
    "`bench.aggregator.large_domain`.",
    "windows": "100 collections, windows of a second that are kept for a minute; "
    "`bench.aggregator.scale.windows`.",
}


def keep(part: str, rows: Sequence[ResultRow], file: Path = FILE) -> None:
    """Replace a part's earlier rows by these, and print them.

    Parameters
    ----------
    part : one of PARTS.
    rows : figures by column, the same columns in each; the unit is in the column's name.
    """
    found = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    found[part] = {"machine": machine(), "rows": [dict(row) for row in rows]}
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    kept = {name: found[name] for name in PARTS if name in found}
    sections = [
        f"## {name}\n\n{PARTS[name]}\nOn {one['machine']}.\n\n{table(one['rows'])}"
        for name, one in kept.items()
    ]
    file.with_suffix(".md").write_text("\n".join(sections), encoding="utf-8")
    click.echo(table(rows), nl=False)


def table(rows: Sequence[ResultRow]) -> str:
    """Markdown, one line per row."""
    lines = [list(rows[0]), ["---" for _ in rows[0]]]
    lines += [[shown(figure) for figure in row.values()] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shown(figure: float | str) -> str:
    """Texts unchanged, integers in full, other numbers to three digits."""
    if isinstance(figure, str):
        return figure
    return f"{figure:,.0f}" if figure == int(figure) or abs(figure) >= 1000 else f"{figure:.3g}"


def machine() -> str:
    """Description of the machine. The load is that of the last minute, including the benchmark's own."""
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {gibibytes:.0f} GiB, load {os.getloadavg()[0]:.1f}"
