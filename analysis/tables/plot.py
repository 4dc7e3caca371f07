"""Plots of a table of estimates: shares with their intervals, by value or over time.

Rule: a bar is one row of the table, with the interval of that row; nothing is summed or smoothed here.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.analysis.errors import WrongArgumentError, needed

REMEDY = "pip install 'deniable[analysis]'"
MOST_LINES = 6
MOST_BARS = 20
MOST_MARKED = 300  # windows of a line with a marker and a bar each; of more, only those that stand alone
MOST_CHARACTERS = 32
BAR_INCHES = 0.24
LEGEND_WIDTH = 1.3  # of a figure with a legend, as a multiple of one without
NUMBER = "number"


def plot_shares(
    table: Any, about: Mapping[str, Any], *, log: bool = False, top: int | None = None, axes: Any = None
) -> Any:
    """Draw one window as bars, several as lines over time, with 95 % intervals.

    Parameters
    ----------
    table : pyarrow.Table by `estimate_schema`, of one collection, or of a roll-up.
    about : of the ArrowTable.
    log : True for a logarithmic axis of a number that begins at 0 or above, else of the shares.
    top : how many of the largest shares are drawn, at least 1, of the newest of several windows; None: 20 of
        one window, six of several. One window of a number has all its rows, at their places on its axis.
    axes : matplotlib.axes.Axes to draw in; None for a new figure, as high as its bars need.

    Returns
    -------
    The matplotlib.axes.Axes, labelled.

    Raises
    ------
    WrongArgumentError if the table has no rows, rows of several collections, or none of estimates, or `top`
    is no integer of at least 1.
    AnalysisError if matplotlib is not installed.
    """
    pyplot = needed("matplotlib.pyplot", "plot", REMEDY)
    missing = [name for name in ("value", "frequency", "low", "high") if name not in table.column_names]
    if missing or not table.num_rows:
        lacks = f"lacks {', '.join(missing)}" if missing else "has no rows"
        raise WrongArgumentError(f"plot needs rows of estimates with shares and intervals: the table {lacks}")
    names = set(table["collection"].to_pylist()) if "collection" in table.column_names else {""}
    if len(names) > 1:
        raise WrongArgumentError(f"plot needs a table of one collection, got {', '.join(sorted(names))}")
    if top is not None and (type(top) is not int or top < 1):
        raise WrongArgumentError(f"top must be an integer of at least 1, or None, got {top!r}")
    starts = table["window_start"].unique().to_pylist() if "window_start" in table.column_names else [None]
    is_number = _mechanism(table, about) == NUMBER
    bars = 0 if len(starts) > 1 or is_number else min(top or MOST_BARS, table.num_rows)
    if axes is None:
        width, height = pyplot.rcParams["figure.figsize"]
        size = (width * (LEGEND_WIDTH if len(starts) > 1 else 1), max(height, BAR_INCHES * (bars + 5)))
        _, axes = pyplot.subplots(figsize=size, layout="constrained")
    if len(starts) > 1:
        _draw_lines(axes, table, max(starts), top or MOST_LINES, is_number=is_number)
    elif is_number:
        _draw_steps(axes, table, log=log)
    else:
        _draw_bars(axes, table, bars)
    if log and not (is_number and len(starts) == 1):
        (axes.set_yscale if len(starts) > 1 else axes.set_xscale)("log")
    shown = [about.get("collection") or "", *names, _period(table, about)]
    axes.set_title("\n".join(dict.fromkeys(filter(None, shown))), fontsize="medium")
    return axes


def _mechanism(table: Any, about: Mapping[str, Any]) -> str:
    if "mechanism" in table.column_names:
        return str(table["mechanism"][0].as_py())
    return str((about.get("independent") or {}).get("mechanism"))


def _figures(table: Any) -> tuple[Any, Any, Any]:
    """Return shares in percent, and what intervals extend below and above them, float64 (n,)."""
    share, low, high = (100 * table[name].to_numpy() for name in ("frequency", "low", "high"))
    return share, np.maximum(share - low, 0), np.maximum(high - share, 0)


def _draw_bars(axes: Any, table: Any, bars: int) -> None:
    share, below, above = _figures(table)
    order = np.argsort(-share, kind="stable")[:bars]
    places = range(len(order))
    values = table["value"].to_pylist()
    axes.barh(places, share[order], color="tab:blue", alpha=0.6)
    axes.errorbar(share[order], places, xerr=(below[order], above[order]), fmt="none", color="black")
    # Places, not names: equal ones would share a bar, and `$` would begin a formula.
    axes.set_yticks(places, [_name(values[row]) for row in order], parse_math=False)
    axes.set_ylim(len(order) - 0.4, -0.6)
    axes.set_xlabel("share of reports, %, with 95 % interval")
    axes.set_ylabel(f"value{_rest(len(order), len(share))}")


def _draw_steps(axes: Any, table: Any, *, log: bool) -> None:
    lower = np.array([float(value) for value in table["value"].to_pylist()])
    share, below, above = _figures(table)
    order = np.argsort(lower)
    lower, share, below, above = (each[order] for each in (lower, share, below, above))
    upper = _upper_edges(table)[order]
    axes.bar(lower, share, upper - lower, align="edge", color="tab:blue", alpha=0.6, edgecolor="white")
    middle = (lower + upper) / 2
    if log:
        if lower[0] < 0:
            raise WrongArgumentError(f"log must be False for a number that may be negative, got {lower[0]:g}")
        axes.set_xscale("symlog", linthresh=upper[0])
        axes.xaxis.set_major_formatter("{x:g}")
        middle[1:] = np.sqrt(lower[1:] * upper[1:])
    axes.errorbar(middle, share, (below, above), fmt="none", color="black")
    axes.set_xlim(lower[0], upper[-1])
    axes.set_xlabel("number, each bar over its row [from, to)")
    axes.set_ylabel("share of reports in each row, %, with 95 % interval")


def _upper_edges(table: Any) -> npt.NDArray[np.float64]:
    """Where rows of a number end, float64 (n,). In old files the last one is as wide as the one before it."""
    lower = np.array([float(value) for value in table["value"].to_pylist()])
    if "upper" in table.column_names and not table["upper"].null_count:
        stated: npt.NDArray[np.float64] = table["upper"].to_numpy()
        return stated
    edges = np.unique(lower)
    ends = np.append(edges[1:], 2 * edges[-1] - edges[-2] if len(edges) > 1 else np.inf)
    return ends[np.searchsorted(edges, lower)]


def _draw_lines(axes: Any, table: Any, newest: Any, top: int, *, is_number: bool) -> None:
    """Draw the shares of a few values; a line breaks where windows are missing."""
    values, moments = np.array(table["value"].to_pylist()), np.array(table["window_start"].to_pylist())
    length = table["window_end"][0].as_py() - table["window_start"][0].as_py()
    share, below, above = _figures(table)
    rows_of_newest = np.flatnonzero(moments == newest)
    leading = rows_of_newest[np.argsort(-share[rows_of_newest], kind="stable")][:top]
    lines = []
    for value in values[leading].tolist():
        rows = np.flatnonzero(values == value)
        rows = rows[np.argsort(moments[rows], kind="stable")]
        times = moments[rows]
        gaps = np.flatnonzero(np.diff(times) > length) + 1
        middle, *ends = (np.insert(each[rows], gaps, np.nan) for each in (share, below, above))
        times = np.insert(times, gaps, times[gaps])
        lines.append((_marked if len(times) <= MOST_MARKED else _banded)(axes, times, middle, ends))
    names = [_name(value) for value in values[leading].tolist()]
    if is_number:
        upper = _upper_edges(table)
        names = [f"[{name}, {upper[row]:.10g})" for name, row in zip(names, leading, strict=True)]
    axes.set_xlabel("start of the window, UTC")
    axes.set_ylabel("share of reports, %, with 95 % interval")
    _set_time_axis(axes)
    _set_legend(axes, lines, names, "row" if is_number else "value", len(np.unique(values)))


def _marked(axes: Any, times: Any, middle: Any, ends: Any) -> Any:
    line = axes.errorbar(times, middle, ends, marker="o", markersize=3, elinewidth=1)
    for interval in line.lines[2]:
        interval.set_alpha(0.5)
    return line


def _banded(axes: Any, times: Any, middle: Any, ends: Any) -> Any:
    """Draw the line with its intervals as a band; a window between two gaps, where no line is, is marked."""
    is_gap = np.pad(np.isnan(middle), 1, constant_values=True)
    alone = np.flatnonzero(~is_gap[1:-1] & is_gap[:-2] & is_gap[2:]).tolist()
    (line,) = axes.plot(times, middle, linewidth=1, marker="o", markersize=3, markevery=alone)
    below, above = ends
    axes.fill_between(times, middle - below, middle + above, color=line.get_color(), alpha=0.25)
    return line


def _set_time_axis(axes: Any) -> None:
    dates = needed("matplotlib.dates", "plot", REMEDY)
    locator = dates.AutoDateLocator(tz=UTC, minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=UTC, show_offset=False))


def _set_legend(axes: Any, lines: list[Any], names: list[str], kind: str, number: int) -> None:
    """Name the lines beside the axes, where the legend covers no data."""
    title = f"{kind}{_rest(len(names), number)}"
    legend = axes.legend(lines, names, title=title, loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)
    for text in legend.get_texts():
        text.set_parse_math(False)


def _name(value: str) -> str:
    """What a value is called beside its bar or line: short, printable, never empty."""
    name = value if value.isprintable() else ascii(value)[1:-1]
    return (name if len(name) <= MOST_CHARACTERS else f"{name[: MOST_CHARACTERS - 1]}…") or '""'


def _rest(drawn: int, number: int) -> str:
    return f", the largest {drawn} of {number:,}" if drawn < number else ""


def _period(table: Any, about: Mapping[str, Any]) -> str:
    if "window_start" in table.column_names:
        start, end = min(table["window_start"].to_pylist()), max(table["window_end"].to_pylist())
    elif coverage := about.get("coverage"):
        start, end = (datetime.fromtimestamp(coverage[name], UTC) for name in ("from", "to"))
    else:
        return ""
    return f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
