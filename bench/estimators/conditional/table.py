"""The table of all cells, a section for each kind, and its squares as they were stored."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np

from bench.estimators.conditional.judging import Judged, Verdict
from bench.estimators.conditional.kinds import EPSILONS, KINDS, REPORTS
from bench.sections import FOLDER, ResultRow, Section, number, percent, read, rows_of

RUNS = 60
FILE = FOLDER / "conditional_coverage.md"
#: Of the noise of the first cell, and how far apart those of cells are.
SEED, SEEDS_APART = 1_000_000, 100
ABOUT = """\
Percent, by epsilon. Clients are fixed, and only noise is drawn anew; the rule is in
`bench/estimators/conditional/judging.py`.

- Intervals: runs that hold the worst fixed value of all populations, and the mean over all values.
- `discoveries`: 100 minus the false share. `all at once`: runs in which intervals for all values hold all.
- In brackets: the limit, 93 % for a fixed value and 95 % for these two, is not kept. `-`: most intervals are
  the whole range, or none is stated; `nothing` is the share of those in all cells of the line."""

#: What was judged of a kind, by figure, number of reports and epsilon.
Cells = Mapping[tuple[str, int, float], Judged]


@dataclass(frozen=True)
class Square:
    """One figure of one cell as stored: percent held by the worst value, or None where nothing is said."""

    kind: str
    figure: str
    epsilon: float
    reports: int
    held: float | None
    is_failed: bool


def simulated(kind: str, runs: int) -> Cells:
    """Judge all cells of a kind; their noise is the same each time."""
    return {
        (figure, reports, epsilon): judged
        for place, (epsilon, reports) in enumerate(product(EPSILONS, REPORTS))
        for figure, judged in KINDS[kind].judged(epsilon, reports, runs, SEED + SEEDS_APART * place).items()
    }


def section_of(cells: Cells, about: str = ABOUT) -> Section:
    """A line for each figure and number of reports, and then what failed."""
    figures = dict.fromkeys(figure for figure, _, _ in cells)
    sizes = sorted({reports for _, reports, _ in cells})
    rows = [_row(figure, size, cells) for figure, size in product(figures, sizes)]
    failed = {cell: one for cell, one in cells.items() if one.verdict == Verdict.FAILED}
    wide = sum(one.verdict == Verdict.WIDE for one in cells.values())
    held = len(cells) - len(failed) - wide
    below = f"{held:,} of {len(cells):,} figures are held, {wide:,} say nothing, and {len(failed):,} failed."
    missed = [
        f"{figure}, epsilon {epsilon:g}, {reports:,} reports: {percent(1 - one.worst)} % ({one.population})"
        for (figure, reports, epsilon), one in failed.items()
    ]
    return Section(about, rows, below, missed)


def _row(figure: str, reports: int, cells: Cells) -> ResultRow:
    found = {epsilon: cells.get((figure, reports, epsilon)) for epsilon in EPSILONS}
    judged = [each for each in found.values() if each]
    mean, wide = (np.mean([getattr(each, name) for each in judged]) for name in ("mean", "wide"))
    shown = {f"{epsilon:g}": _shown(each) if each else "" for epsilon, each in found.items()}
    return {"figure": figure, "N": reports, **shown, "mean": percent(1 - mean), "nothing": percent(wide, 0)}


def _shown(judged: Judged) -> str:
    """Percent held by the worst value, in brackets where it failed; a dash where nothing is said."""
    if judged.verdict == Verdict.WIDE:
        return "-"
    held = percent(1 - judged.worst)
    return f"[{held}]" if judged.verdict == Verdict.FAILED else held


def stored(file: Path = FILE) -> list[Square]:
    """Return all squares of a file, in the order of kinds."""
    kinds = read(file)[1]
    return [
        square
        for kind in KINDS
        if kind in kinds
        for row in rows_of(file, kind)
        for square in _squares(kind, row)
    ]


def _squares(kind: str, row: Mapping[str, str]) -> Iterable[Square]:
    for epsilon in EPSILONS:
        if cell := row[f"{epsilon:g}"]:
            held = None if cell == "-" else float(cell.strip("[]"))
            yield Square(kind, row["figure"], epsilon, int(number(row["N"])), held, cell.startswith("["))


def conditional(kind: str, runs: int = RUNS) -> Section:
    """Judge a kind."""
    return section_of(simulated(kind, runs), ABOUT if kind == next(iter(KINDS)) else "Percent, as above.")


CASES = {kind: partial(conditional, kind) for kind in KINDS}
