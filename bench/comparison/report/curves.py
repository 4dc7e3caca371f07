"""The right half of the picture: processor time and memory against each growing size, on log scales."""

from collections.abc import Sequence
from math import ceil, floor, log10

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import NullLocator

from bench.comparison.report.bars import short
from bench.comparison.report.exponent import Exponent, two_decimals
from bench.comparison.report.figure import Line

WIDTH = 7.9  # inches
PANEL, COLUMNS = 3.0, (0.85, 4.7)  # inches: width of a panel; left edges of the panels of time and memory
PANEL_HEIGHT, GAP, HEAD = 1.05, 0.5, 0.35
LEAST_DECADES, MOST_TICKS = 2.0, 4
ROOM_FOR_A_NAME = 0.145  # fraction of a panel's height
COLORS, MARKERS = ("#2b6ca3", "#d0622b", "#3f8f5f"), "os^"


def height(lines: Sequence[Line]) -> float:
    """Height of the panels, inches."""
    return HEAD + (PANEL_HEIGHT + GAP) * len(_by_axis(lines))


def draw(canvas: Canvas, lines: Sequence[Line], left: float, top: float, room: float) -> None:
    """Draw a row of two panels for each size.

    Parameters
    ----------
    canvas : to draw on.
    lines : several of one axis share its panels.
    left, top : inches from the edges.
    room : inches from the top down, `height` at least.
    """
    width, whole = canvas.get_size_inches()
    rows = _by_axis(lines)
    tall = (room - HEAD) / len(rows) - GAP
    heads = ("Processor time, s", "Memory, MiB")
    for begin, head in zip(COLUMNS, heads, strict=True):
        canvas.text((left + begin) / width, 1 - (top + 0.1) / whole, head, fontweight="bold", fontsize=11)
    for row, (axis, own) in enumerate(rows.items()):
        bottom = whole - top - HEAD - tall - row * (tall + GAP)
        time, memory = (
            canvas.add_axes(((left + begin) / width, bottom / whole, PANEL / width, tall / whole))
            for begin in COLUMNS
        )
        _panel(time, axis, own, [(line.seconds, line.time_exponent) for line in own])
        _panel(memory, axis, own, [(line.mebibytes, line.memory_exponent) for line in own])


def _by_axis(lines: Sequence[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.axis, []).append(line)
    return found


def _panel(
    axes: Axes, axis: str, lines: Sequence[Line], measured: Sequence[tuple[Sequence[float], Exponent]]
) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for number, (line, (values, power)) in enumerate(zip(lines, measured, strict=True)):
        label = f"{line.what}: power {two_decimals(power.value)}"
        color, marker = COLORS[number % len(COLORS)], MARKERS[number % len(MARKERS)]
        axes.plot(line.sizes, values, marker=marker, color=color, markersize=4.5, linewidth=1.6, label=label)
    axes.yaxis.set_minor_locator(NullLocator())
    _limit(axes, [value for values, _ in measured for value in values], len(lines))
    sizes = sorted({size for line in lines for size in line.sizes})
    axes.set_xticks(sizes, [short(size) for size in sizes])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.grid(color="#e3e6ea", linewidth=0.8)
    axes.set_xlabel(axis, labelpad=1)
    axes.legend(
        loc="upper left", frameon=False, fontsize=8.5, borderaxespad=0.0, labelspacing=0.15, handlelength=1.6
    )


def _limit(axes: Axes, values: Sequence[float], names: int) -> None:
    """Add room for the lines and, above them, for their names, without ticks."""
    least, most = min(values) / 1.6, max(values) * 1.6
    most = max(most, least * 10**LEAST_DECADES)
    share = min(0.6, ROOM_FOR_A_NAME * names)
    axes.set_ylim(least, least * (most / least) ** (1 / (1 - share)))
    decades = [10.0**power for power in range(ceil(log10(least)), floor(log10(most)) + 1)]
    ticks = decades[:: ceil(len(decades) / MOST_TICKS)]
    axes.set_yticks(ticks, [short(tick) for tick in ticks])
