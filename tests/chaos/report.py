"""The results by fault: runs, differences and longest gaps, as a table and as JSON to resume from."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.chaos.devices.faults import PATH_FAULTS
from tests.chaos.judging.verdict import Verdict
from tests.chaos.run import Order

COLUMNS = (
    "fault",
    "runs",
    "exact",
    "difference",
    "records",
    "missing",
    "doubled",
    "finals",
    "longest gap",
    "of a partition",
    "latest final",
)
PATH_COLUMNS = (
    *(
        "fault",
        "runs",
        "exact",
        "requests",
        "uploads",
        "told 204",
        "counted once",
        "rejected",
        "lost",
        "twice",
    ),
    *("difference", "of workers", "latest pack"),
)

Row = dict[str, Any]


class Report:
    """Verdicts by fault and seed, in a file that is written after every run.

    Parameters
    ----------
    file : JSON; the table is in the file of the same name with `.md`.
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
        self.file.write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")
        self.file.with_suffix(".md").write_text(table(self.rows), encoding="utf-8")


def table(rows: Iterable[Row]) -> str:
    """Return a Markdown table: a row per fault with sums over its runs and its longest gaps.

    Faults on the path of devices have another table, below the first.
    """
    of_packs: dict[str, list[Row]] = {}
    of_path: dict[str, list[Row]] = {}
    for row in rows:
        (of_path if row["fault"] in PATH_FAULTS else of_packs).setdefault(row["fault"], []).append(row)
    tables = [_table(COLUMNS, _cells, of_packs)]
    if of_path:
        tables.append(_table(PATH_COLUMNS, _path_cells, of_path))
    return "\n".join(tables)


def _table(
    columns: Sequence[str], cells: Callable[[str, list[Row]], list[str]], faults: Mapping[str, list[Row]]
) -> str:
    lines = [" | ".join(columns), " | ".join("---" for _ in columns)]
    lines += [" | ".join(cells(fault, runs)) for fault, runs in faults.items()]
    return "".join(f"| {line} |\n" for line in lines)


def _path_cells(fault: str, runs: list[Row]) -> list[str]:
    judged = [row for row in runs if "error" not in row]
    names = ("requests", "uploads", "told", "counted", "refused", "lost", "twice")
    apart = sum(row["lost"] + row["twice"] + row["bits_off"] + row["outcomes_off"] for row in judged)
    return [
        *_runs(fault, runs),
        *(f"{sum(row[name] for row in judged):,}" for name in names),
        str(apart) if len(judged) == len(runs) else f"{apart}, {len(runs) - len(judged)} not judged",
        str(sum(map(_apart, judged))),
        f"{max((row['latest_pack'] for row in judged), default=0):.1f} s",
    ]


def _runs(fault: str, runs: list[Row]) -> list[str]:
    return [fault, str(len(runs)), str(sum(row["exact"] for row in runs))]


def _apart(row: Row) -> int:
    """Return the difference between what workers stored and the recount of packs."""
    return int(row["difference"] + row["published"] + row["refusals_off"] + row["finals_off"])


def _cells(fault: str, runs: list[Row]) -> list[str]:
    judged = [row for row in runs if "error" not in row]
    apart = sum(map(_apart, judged))
    return [
        *_runs(fault, runs),
        str(apart) if len(judged) == len(runs) else f"{apart}, {len(runs) - len(judged)} not judged",
        *(f"{sum(row[name] for row in judged):,}" for name in ("records", "missing", "doubled", "finals")),
        *(
            f"{max((row[name] for row in judged), default=0):.1f} s"
            for name in ("longest_gap", "partition_gap")
        ),
        _latest(judged),
    ]


def _latest(judged: list[Row]) -> str:
    """Return the latest final estimate; earlier versions of the suite did not record it."""
    shown = [row["latest_final"] for row in judged if "latest_final" in row]
    return f"{max(shown):.1f} s" if shown else ""


def _name(order: Order) -> Row:
    return {
        "fault": order.fault,
        "seed": order.seed,
        "seconds": order.seconds,
        "rate": order.packs_per_second,
    }
