"""Plots of a table of estimates: shares with their intervals, by value or over time.

Rule: a bar is one row of the table, with the interval of that row; nothing is summed or smoothed here.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from deniable.analysis.errors import WrongArgumentError, needed

REMEDY = "pip install 'deniable[analysis]'"
MOST_LINES = 6
MOST_BARS = 40
NUMBER = "number"


def plot_shares(table: Any, about: Mapping[str, Any], *, log: bool = False, axes: Any = None) -> Any:
    """Draw one window as bars, several as lines over time, with 95 % intervals.

    Of one window up to 40 of the largest shares are drawn, of several windows six; of a number all rows, at
    their places on its axis.

    Parameters
    ----------
    table : pyarrow.Table by `estimate_schema`, of one collection, or of a roll-up.
    about : of the ArrowTable.
    log : True for a logarithmic axis of a number that begins at 0 or above, else of the shares.
    axes : matplotlib.axes.Axes to draw in; None for a new figure.

    Returns
    -------
    The matplotlib.axes.Axes, labelled.

    Raises
    ------
    WrongArgumentError if the table has no rows, rows of several collections, or none of estimates.
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
    if axes is None:
        _, axes = pyplot.subplots(layout="constrained")
    starts = table["window_start"].unique().to_pylist() if "window_start" in table.column_names else [None]
    is_number = _mechanism(table, about) == NUMBER
    if len(starts) > 1:
        _draw_lines(axes, table, starts)
    elif is_number:
        _draw_steps(axes, table, log=log)
    else:
        _draw_bars(axes, table)
    if log and not (is_number and len(starts) == 1):
        (axes.set_yscale if len(starts) > 1 else axes.set_xscale)("log")
    shown = [about.get("collection") or "", *names, "" if len(starts) > 1 else _period(table)]
    axes.set_title(" ".join(dict.fromkeys(filter(None, shown))))
    return axes


def _mechanism(table: Any, about: Mapping[str, Any]) -> str:
    if "mechanism" in table.column_names:
        return str(table["mechanism"][0].as_py())
    return str((about.get("independent") or {}).get("mechanism"))


def _figures(table: Any) -> tuple[Any, Any, Any]:
    """Return shares in percent, and what intervals extend below and above them, float64 (n,)."""
    share, low, high = (100 * table[name].to_numpy() for name in ("frequency", "low", "high"))
    return share, np.maximum(share - low, 0), np.maximum(high - share, 0)


def _draw_bars(axes: Any, table: Any) -> None:
    share, below, above = _figures(table)
    order = np.argsort(-share, kind="stable")[:MOST_BARS][::-1]
    values = table["value"].to_pylist()
    axes.barh([values[place] for place in order], share[order], color="tab:blue", alpha=0.6)
    axes.errorbar(
        share[order], range(len(order)), xerr=(below[order], above[order]), fmt="none", color="black"
    )
    axes.set_xlabel("share of reports, %, with 95 % interval")
    axes.set_ylabel("value")


def _draw_steps(axes: Any, table: Any, *, log: bool) -> None:
    """Draw the rows of a number; the last one as wide as the one before it in files of older versions."""
    lower = np.array([float(value) for value in table["value"].to_pylist()])
    share, below, above = _figures(table)
    order = np.argsort(lower)
    lower, share, below, above = (each[order] for each in (lower, share, below, above))
    last = table["upper"][int(order[-1])].as_py() if "upper" in table.column_names else None
    upper = np.append(lower[1:], 2 * lower[-1] - lower[-2] if last is None else last)
    axes.bar(lower, share, upper - lower, align="edge", color="tab:blue", alpha=0.6, edgecolor="white")
    middle = (lower + upper) / 2
    if log:
        if lower[0] < 0:
            raise WrongArgumentError(f"log must be False for a number that may be negative, got {lower[0]:g}")
        axes.set_xscale("symlog", linthresh=upper[0])
        middle[1:] = np.sqrt(lower[1:] * upper[1:])
    axes.errorbar(middle, share, (below, above), fmt="none", color="black")
    axes.set_xlim(lower[0], upper[-1])
    axes.set_xlabel("number, each bar from its lower edge to the next")
    axes.set_ylabel("share of reports in each row, %, with 95 % interval")


def _draw_lines(axes: Any, table: Any, starts: list[Any]) -> None:
    """Draw the shares of a few values; a line breaks where windows are missing."""
    values, moments = np.array(table["value"].to_pylist()), np.array(table["window_start"].to_pylist())
    length = table["window_end"][0].as_py() - table["window_start"][0].as_py()
    share, below, above = _figures(table)
    newest = moments == max(starts)
    leading = values[newest][np.argsort(-share[newest], kind="stable")][:MOST_LINES]
    for value in leading.tolist():
        rows = np.flatnonzero(values == value)
        rows = rows[np.argsort(moments[rows], kind="stable")]
        times = moments[rows]
        gaps = np.flatnonzero(np.diff(times) > length) + 1
        middle, *ends = (np.insert(each[rows], gaps, np.nan) for each in (share, below, above))
        axes.errorbar(np.insert(times, gaps, times[gaps]), middle, ends, marker=".", capsize=2, label=value)
    axes.set_xlabel("start of the window, UTC")
    axes.set_ylabel("share of reports, %, with 95 % interval")
    axes.figure.autofmt_xdate()
    number = len(np.unique(values))
    axes.legend(title="value" if number <= MOST_LINES else f"{MOST_LINES} of {number} values")


def _period(table: Any) -> str:
    if "window_start" not in table.column_names:
        return ""
    start, end = (table[name][0].as_py() for name in ("window_start", "window_end"))
    return f"{start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
