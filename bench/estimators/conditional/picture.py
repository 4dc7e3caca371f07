"""The stored table as one picture: a row for each kind, a panel for each figure, a square for each cell."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from bench.estimators.conditional.kinds import KINDS
from bench.estimators.conditional.table import FILE, Square, stored

#: Columns of panels, and the figures in each.
COLUMNS: dict[str, tuple[str, ...]] = {
    "each value": ("share", "difference"),
    "other, mean, margins": ("other", "mean", "margins"),
    "quantiles, conditional": ("quantiles", "conditional"),
    "discoveries": ("discoveries", "discoveries in margins"),
    "all values at once": ("all at once",),
}
#: Beginnings of kinds whose second word goes on another line.
SEVERAL_WINDOWS = ("compare", "roll-up", "remainder")
LEAST, NOMINAL, MOST = 80.0, 95.0, 100.0
WIDTH, LEFT, RIGHT, TOP, FOOT, ROW = 10.0, 2.0, 0.1, 1.15, 0.95, 0.62  # inches
GREY, INK = "#d9d9d9", "#222222"
COLOURS = LinearSegmentedColormap.from_list(
    "coverage", [(0.0, "#b2182b"), (0.3, "#f4a582"), (0.5, "#fbfbf6"), (0.75, "#a6cee3"), (1.0, "#4393c3")]
)
NORM = TwoSlopeNorm(NOMINAL, LEAST, MOST)


class Grid(NamedTuple):
    """The squares of each panel: epsilons across, and numbers of reports down."""

    epsilons: tuple[float, ...]
    reports: tuple[int, ...]


def draw(cells: list[Square], path: Path) -> None:
    """Draw the cells of those kinds that have some."""
    kinds = [kind for kind in KINDS if any(cell.kind == kind for cell in cells)]
    grid = Grid(*(tuple(sorted({getattr(cell, name) for cell in cells})) for name in ("epsilon", "reports")))
    height = TOP + ROW * len(kinds) + FOOT
    with rc_context({"font.family": "DejaVu Sans", "font.size": 8, "hatch.linewidth": 0.5}):
        figure = Figure(figsize=(WIDTH, height), facecolor="white")
        axes = figure.subplots(len(kinds), len(COLUMNS), squeeze=False)
        figure.subplots_adjust(
            LEFT / WIDTH, FOOT / height, 1 - RIGHT / WIDTH, 1 - TOP / height, wspace=0.08, hspace=0.22
        )
        for row, kind in enumerate(kinds):
            for column, figures in enumerate(COLUMNS.values()):
                panel, last = axes[row, column], row == len(kinds) - 1
                shown = [cell for cell in cells if cell.kind == kind and cell.figure in figures]
                _panel(panel, shown, grid, labels_x=last, labels_y=column == 0)
            name = kind.replace(" ", "\n", 1) if kind.startswith(SEVERAL_WINDOWS) else kind
            axes[row, 0].annotate(
                name, (0, 0.5), (-44, 0), "axes fraction", "offset points", ha="right", va="center"
            )
        for panel, name in zip(axes[0], COLUMNS, strict=True):
            panel.set_title(name, fontsize=9, fontweight="bold", pad=6)
        _legend(figure, height)
        figure.savefig(path, dpi=130, metadata={"Software": None})


def _panel(panel: Axes, cells: list[Square], grid: Grid, *, labels_x: bool, labels_y: bool) -> None:
    """Draw a square for each cell; of two figures the one that is worse."""
    panel.set_xlim(0, len(grid.epsilons))
    panel.set_ylim(len(grid.reports), 0)
    panel.tick_params(length=0, labelsize=6, pad=1.5)
    panel.set_xticks(np.arange(len(grid.epsilons)) + 0.5, [f"{each:g}" for each in grid.epsilons])
    reports = [f"{each:,}".replace("1,000,000", "1 million") for each in grid.reports]
    panel.set_yticks(np.arange(len(reports)) + 0.5, reports)
    panel.tick_params(labelbottom=labels_x, labelleft=labels_y)
    for spine in panel.spines.values():
        spine.set_visible(False)
    if not cells and not (labels_x or labels_y):
        panel.set_axis_off()
    for cell in sorted(cells, key=lambda one: (one.is_failed, one.held is not None, -(one.held or 0))):
        _square(panel, cell, (grid.epsilons.index(cell.epsilon), grid.reports.index(cell.reports)))


def _square(panel: Axes, cell: Square, place: tuple[int, int]) -> None:
    wide = cell.held is None
    colour = "white" if cell.held is None else COLOURS(NORM(cell.held))
    panel.add_patch(
        Rectangle(
            place, 1, 1, facecolor=colour, edgecolor="#999999" if wide else GREY, linewidth=0.4,
            hatch="//////" if wide else None,
        )
    )  # fmt: skip
    if cell.is_failed:
        panel.plot(place[0] + 0.5, place[1] + 0.5, "x", color=INK, markersize=4, markeredgewidth=1.1)


def _legend(figure: Figure, height: float) -> None:
    figure.text(
        LEFT / WIDTH, 1 - 0.2 / height, "How often intervals hold the truth", fontsize=13,
        fontweight="bold", va="top",
    )  # fmt: skip
    figure.text(
        LEFT / WIDTH, 1 - 0.47 / height,
        "Fixed clients, only noise drawn anew: percent of windows that hold the worst fixed value of all"
        " populations;\n100 minus the false share of discoveries; percent that hold all values at once."
        " Across: epsilon of a report. Down: reports.",
        va="top", color="#444444",
    )  # fmt: skip
    bar = figure.add_axes((LEFT / WIDTH, 0.42 / height, 0.36, 0.13 / height))
    colours = figure.colorbar(ScalarMappable(NORM, COLOURS), cax=bar, orientation="horizontal")
    colours.set_ticks(
        [80, 85, 90, 93, 95, 97.5, 100], labels=["≤ 80", "85", "90", "93", "95", "97.5", "100 %"]
    )
    colours.ax.tick_params(labelsize=7, length=2)
    colours.outline.set_visible(False)
    says_nothing = Patch(
        facecolor="white", edgecolor="#999999", hatch="//////", label="says nothing, or withheld"
    )
    failed = Rectangle((0, 0), 1, 1, facecolor="white", edgecolor="white", label="×  limit not kept")
    figure.legend(
        handles=[says_nothing, failed], loc="lower right", bbox_to_anchor=(1 - RIGHT / WIDTH, 0.3 / height),
        ncols=2, frameon=False,
    )  # fmt: skip


def main() -> None:
    """Draw what is stored."""
    draw(stored(), FILE.with_suffix(".png"))
