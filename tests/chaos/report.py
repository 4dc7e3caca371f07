"""The results by fault: runs, differences and longest gaps, as a table and as JSON to resume from."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.chaos.faults.catalog import FAULTS
from tests.chaos.faults.fault import ClusterFault, Fault, PathFault
from tests.chaos.judging.verdict import Verdict
from tests.chaos.scenes.order import Order

Row = dict[str, Any]

OF_WORKERS = ("difference", "published", "refusals_off", "finals_off")
#: What the columns show, each a sum of figures or the longest of one, in seconds.
COLUMNS: Mapping[str, Sequence[str]] = {
    "difference": OF_WORKERS,
    "records": ("records",),
    "missing": ("missing",),
    "doubled": ("doubled",),
    "finals": ("finals",),
    "longest gap": ("longest_gap",),
    "of a partition": ("partition_gap",),
    "latest final": ("latest_final",),
}
PATH_COLUMNS: Mapping[str, Sequence[str]] = {
    "requests": ("requests",),
    "uploads": ("uploads",),
    "told 204": ("told",),
    "counted once": ("counted",),
    "rejected": ("refused",),
    "lost": ("lost",),
    "twice": ("twice",),
    "difference": ("lost", "twice", "bits_off", "outcomes_off"),
    "of workers": OF_WORKERS,
    "latest pack": ("latest_pack",),
}
CLUSTER_COLUMNS: Mapping[str, Sequence[str]] = {
    "difference": ("difference", "published", "refusals_off", "replayed", "missing", "doubled"),
    "finals": ("finals",),
    "finals changed": ("finals_changed",),
    "longest gap": ("longest_gap",),
    "time to ready": ("ready_seconds",),
}
#: A table for each kind of fault.
KINDS: Mapping[type[Fault], Mapping[str, Sequence[str]]] = {
    Fault: COLUMNS,
    PathFault: PATH_COLUMNS,
    ClusterFault: CLUSTER_COLUMNS,
}
SECONDS = ("longest gap", "of a partition", "latest final", "latest pack", "time to ready")


class Report:
    """Verdicts by fault and seed, in a file that is written after every run.

    Parameters
    ----------
    file : JSON, a run a line; the table is in the file of the same name with `.md`.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: list[Row] = json.loads(file.read_text()) if file.exists() else []

    def has(self, order: Order) -> bool:
        """Return whether a run with the same parameters is in it and was exact."""
        wanted = {**_name(order), "exact": True}
        return any(wanted.items() <= row.items() for row in self.rows)

    def add(self, order: Order, verdict: Verdict | None, error: str = "") -> None:
        """Add a run; it replaces an earlier one of the same fault and seed."""
        figures = asdict(verdict) if verdict else {"error": error}
        row = {**_name(order), "exact": bool(verdict and verdict.exact), **figures}
        same = {"fault": order.fault, "seed": order.seed}
        self.rows = [row for row in self.rows if not same.items() <= row.items()]
        self.rows.append(row)
        self.file.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(map(json.dumps, self.rows))
        self.file.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
        self.file.with_suffix(".md").write_text(table(self.rows), encoding="utf-8")


def table(rows: Iterable[Row]) -> str:
    """Return a Markdown table: a row per fault with sums over its runs and its longest gaps.

    Faults on the path of devices, and those of a cluster of brokers, have other tables below the first.
    """
    kinds: dict[type[Fault], dict[str, list[Row]]] = {kind: {} for kind in KINDS}
    for row in rows:
        faults = kinds[type(FAULTS[row["fault"]]) if row["fault"] in FAULTS else Fault]
        faults.setdefault(row["fault"], []).append(row)
    shown = {kind: faults for kind, faults in kinds.items() if faults or kind is Fault}
    return "\n".join(_table(KINDS[kind], faults) for kind, faults in shown.items())


def _table(columns: Mapping[str, Sequence[str]], faults: Mapping[str, list[Row]]) -> str:
    lines = [["fault", "runs", "exact", *columns]]
    lines.append(["---"] * len(lines[0]))
    for fault, runs in faults.items():
        judged = [row for row in runs if "error" not in row]
        cells = {name: _cell(name, columns[name], judged) for name in columns}
        if len(judged) < len(runs):
            cells["difference"] += f", {len(runs) - len(judged)} not judged"
        lines.append([fault, str(len(runs)), str(sum(row["exact"] for row in runs)), *cells.values()])
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(name: str, figures: Sequence[str], judged: list[Row]) -> str:
    if name in SECONDS:
        longest = max((row.get(figures[0], 0.0) for row in judged), default=0.0)
        return f"{longest:.1f} s"
    return f"{sum(row[figure] for row in judged for figure in figures):,}"


def _name(order: Order) -> Row:
    return {"fault": order.fault, "seed": order.seed, "seconds": order.seconds, "rate": order.rate}
