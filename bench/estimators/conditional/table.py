"""The table of all cells as Markdown, and its file of figures."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.estimators.conditional.judging import Judged, Verdict
from bench.estimators.conditional.kinds import EPSILONS, KINDS, REPORTS

#: Figures with a limit of 5 %, which are no coverage of a fixed value.
RATES = ("discoveries", "discoveries in margins", "all at once")
HEADING = """Percent. Clients are fixed, and only noise is drawn anew; the rule is in
`bench/estimators/conditional/judging.py`.

- Intervals: runs that hold the worst fixed value of all populations, and the mean over all values.
- `discoveries`: 100 minus the false share. `all at once`: runs in which intervals for all values hold all.
- In brackets: the limit, 93 % for a fixed value and 95 % for these two, is not kept. `-`: most intervals are
  the whole range, or none is stated; `nothing` is the share of those in all cells of the line.
"""


@dataclass(frozen=True)
class Cell:
    """One figure of one cell."""

    kind: str
    figure: str
    epsilon: float
    reports: int
    judged: Judged

    @property
    def shown(self) -> str:
        """Percent held by the worst value, in brackets where it failed; a dash where nothing is said."""
        if self.judged.verdict == Verdict.WIDE:
            return "-"
        percent = f"{100 * (1 - self.judged.worst):.1f}"
        return f"[{percent}]" if self.judged.verdict == Verdict.FAILED else percent


def cells_of(kind: str, epsilon: float, reports: int, found: Mapping[str, Judged]) -> list[Cell]:
    """Name the figures of a cell."""
    return [Cell(kind, figure, epsilon, reports, judged) for figure, judged in found.items()]


def lines_of(cells: Iterable[Cell]) -> dict[tuple[str, str], list[Cell]]:
    """Group cells by kind and figure, in the order of kinds."""
    lines: dict[tuple[str, str], list[Cell]] = {}
    for cell in sorted(cells, key=lambda one: list(KINDS).index(one.kind)):
        lines.setdefault((cell.kind, cell.figure), []).append(cell)
    return lines


def table(cells: list[Cell]) -> str:
    """Markdown: a line for each kind, figure and number of reports, and then what failed."""
    epsilons = [epsilon for epsilon in EPSILONS if any(cell.epsilon == epsilon for cell in cells)]
    columns = " | ".join(f"{epsilon:g}" for epsilon in epsilons)
    lines = [HEADING, f"| kind | figure | N | {columns} | mean | nothing |"]
    lines.append("|---|---|---:|" + "---:|" * (len(epsilons) + 2))
    for (kind, figure), ones in lines_of(cells).items():
        for reports in REPORTS:
            row = {cell.epsilon: cell for cell in ones if cell.reports == reports}
            if row:
                shown = " | ".join(row[epsilon].shown if epsilon in row else "" for epsilon in epsilons)
                lines.append(f"| {kind} | {figure} | {reports:,} | {shown} | {_means(list(row.values()))} |")
    return "\n".join([*lines, "", *verdicts(cells), ""])


def _means(cells: list[Cell]) -> str:
    mean, wide = (np.mean([getattr(cell.judged, name) for cell in cells]) for name in ("mean", "wide"))
    return f"{100 * (1 - mean):.1f} | {100 * wide:.0f}"


def verdicts(cells: list[Cell]) -> list[str]:
    """One sentence on all, and a line for each cell that failed."""
    failed = [cell for cell in cells if cell.judged.verdict == Verdict.FAILED]
    wide = sum(cell.judged.verdict == Verdict.WIDE for cell in cells)
    lines = [
        f"{len(cells) - len(failed) - wide:,} of {len(cells):,} figures are held, {wide:,} say nothing,"
        f" and {len(failed):,} failed{':' if failed else '.'}"
    ]
    for cell in failed:
        worst = f"{100 * (1 - cell.judged.worst):.1f} % ({cell.judged.population})"
        lines.append(
            f"- {cell.kind}, {cell.figure}, epsilon {cell.epsilon:g}, {cell.reports:,} reports: {worst}"
        )
    return lines


def read_cells(path: Path) -> list[Cell]:
    """Read stored cells; none if there is no file."""
    if not path.exists():
        return []
    return [_cell(*json.loads(line)) for line in path.read_text().splitlines()]


def _cell(kind: str, figure: str, epsilon: float, reports: int, judged: dict[str, Any]) -> Cell:
    return Cell(kind, figure, epsilon, reports, Judged(**judged | {"verdict": Verdict(judged["verdict"])}))


def write_cells(path: Path, cells: list[Cell]) -> None:
    """Store cells, one JSON array a line: kind, figure, epsilon, reports, and what was judged."""
    lines = [
        json.dumps([cell.kind, cell.figure, cell.epsilon, cell.reports, asdict(cell.judged)])
        for ones in lines_of(cells).values()
        for cell in ones
    ]
    path.write_text("\n".join(lines) + "\n")
