"""The left half of the picture: a bar from 1 to the ratio of each comparison, with its figures."""

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from bench.comparison.report.figure import GOAL as GOAL_OF_OURS
from bench.comparison.report.figure import Figure, ResultsPart

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

WIDTH, NAMES, BARS = 12.8, 5.0, 2.8  # inches: total; names before the bars; bars
RATIO, GOAL, ABSOLUTE = 3.75, 3.9, 4.65  # inches from the start of the bars to the columns after them
ROW, MOST_ROW, HEAD, AXIS = 0.235, 0.34, 0.62, 0.3  # inches: a row; above the rows; below them
MOST_TICKS = 5
EM = 0.0071  # average width of a letter, inches per point of font size
MET, UNMET, FREE = "#2b6ca3", "#d0622b", "#aab4c0"
FAINT = "#4a4f58"


def height(parts: Sequence[ResultsPart]) -> float:
    """Height of the bars, inches."""
    return HEAD + AXIS + ROW * len(_entries(parts))


def draw(canvas: "Canvas", parts: Sequence[ResultsPart], top: float, room: float) -> None:
    """Draw all figures, part by part, downwards from `top`, at least `height` inches."""
    width, whole = canvas.get_size_inches()
    entries = _entries(parts)
    tall = min(MOST_ROW * len(entries), room - HEAD - AXIS)
    bottom = whole - top - HEAD - tall
    axes = canvas.add_axes((NAMES / width, bottom / whole, BARS / width, tall / whole))
    _frame(axes, [entry for entry in entries if isinstance(entry, Figure)], len(entries))
    above = ""
    for row, entry in enumerate(entries):
        if isinstance(entry, Figure):
            called = label(entry, above)
            above = entry.name if called == entry.name else above
            _bar(axes, row, entry, called)
        else:
            _write(axes, 0.2 - NAMES, row + 0.1, entry, fontweight="bold", fontsize=11)
    _legend(axes)


def label(figure: Figure, above: str) -> str:
    """Return the figure's name; without a goal, only what differs from the last full name above."""
    more = figure.name.removeprefix(above)
    if figure.goal is not None or not above or more == figure.name or more[0].isalnum():
        return figure.name
    return f"… {more.lstrip(', ')}"


def verdict(figure: Figure) -> str:
    """A mark for whether the goal is met, and the goal."""
    sign = {True: "✓", False: "✗", None: "not judged:"}[figure.met]
    return f"{sign} {figure.goal:g}"


def short(value: float) -> str:
    """Three digits, with a letter for hundreds of thousands and more."""
    for letter, size in (("G", 1e9), ("M", 1e6), ("k", 1e5)):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g} {letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _entries(parts: Sequence[ResultsPart]) -> list[Figure | str]:
    """One row per line: a part's title, then its figures."""
    rows: list[Figure | str] = []
    for part in parts:
        if part.figures:
            rows += [part.title, *part.figures]
    return rows


def _frame(axes: "Axes", figures: Sequence[Figure], rows: int) -> None:
    values = [figure.ratio for figure in figures] + [figure.goal or 1.0 for figure in figures]
    least, most = min(0.5, *values), max(20.0, *values)
    axes.set_xscale("log")
    axes.set_xlim(least / 1.3, most * 1.3)
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    decades = range(ceil(log10(least / 1.3)), floor(log10(most * 1.3)) + 1)
    ticks = [10.0**each for each in decades if each % ceil(len(decades) / MOST_TICKS) == 0]
    axes.set_xticks(ticks, [f"{short(tick)}×" for tick in ticks])
    axes.tick_params(axis="x", which="minor", bottom=False)
    axes.grid(axis="x", color="#e3e6ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axvline(1, color="#4a4f58", linewidth=1)
    _write(axes, RATIO, -1.1, "times better", color=FAINT, ha="right")
    _write(axes, GOAL, -1.1, "goal", color=FAINT)
    _write(axes, ABSOLUTE, -1.1, "ours beside the reference", color=FAINT)


def _bar(axes: "Axes", row: int, figure: Figure, called: str) -> None:
    """Draw bar, goal and texts of a figure."""
    color = {True: MET, False: UNMET, None: FREE}[figure.met]
    hatch = "/////" if figure.met is False else None
    first, last = sorted((1.0, figure.ratio))
    axes.barh(row, last - first, 0.66, first, color=color, hatch=hatch, edgecolor="white", linewidth=0)
    _write(axes, -0.12, row, called, ha="right", fontsize=_fitted(called, NAMES - 0.5, 9.5))
    _write(
        axes,
        RATIO,
        row,
        f"{short(figure.ratio)}×",
        ha="right",
        fontweight="bold",
        color=color if figure.goal else FAINT,
    )
    if figure.goal is not None:
        axes.plot([figure.goal] * 2, [row - 0.42, row + 0.42], color="#1c1f24", linewidth=2.2)
        _write(axes, GOAL, row, verdict(figure), color=color)
    beside = f"{short(figure.ours)} beside {short(figure.reference_value)} {figure.unit}, {figure.reference}"
    asked = f"{short(figure.ours)} {figure.unit}; {short(figure.reference_value)} asked"
    shown = asked if figure.reference == GOAL_OF_OURS else beside
    _write(axes, ABSOLUTE, row, shown, fontsize=_fitted(shown, WIDTH - NAMES - ABSOLUTE, 8.5))


def _fitted(text: str, inches: float, points: float) -> float:
    """Font size, at most this many points, at which a text fits this width."""
    return min(points, inches / (EM * len(text)))


def _write(axes: "Axes", inches: float, row: float, text: str, **style: Any) -> None:
    """Draw text in a row, this many inches right of the start of the bars."""
    axes.text(inches / BARS, row, text, transform=axes.get_yaxis_transform(), **{"va": "center", **style})


def _legend(axes: "Axes") -> None:
    from matplotlib.lines import Line2D  # here, so that figures are named without matplotlib
    from matplotlib.patches import Patch

    signs = [
        Patch(facecolor=MET, label="goal met"),
        Patch(facecolor=UNMET, hatch="/////", edgecolor="white", label="goal not met"),
        Patch(facecolor=FREE, label="no goal, or not judged"),
        Line2D(
            [], [], color="#1c1f24", linewidth=2.2, marker="|", linestyle="none", markersize=10, label="goal"
        ),
    ]
    axes.legend(
        handles=signs,
        ncols=2,
        frameon=False,
        fontsize=8.5,
        borderaxespad=0.2,
        loc="lower right",
        bbox_to_anchor=(0.0, 1.0),
    )
