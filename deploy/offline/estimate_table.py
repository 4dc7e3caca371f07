"""Frequencies and errors of an estimate, as one object for programs and as a table for people."""

import math
from collections.abc import Sequence
from typing import Any

from estimators.frequency.estimate import QUANTILE_975, Estimate
from estimators.rollup import RollUp

SHOWN = 50  # lines of a table, the most frequent first


def record_of(names: Sequence[str], result: Estimate, name: str = "candidate") -> dict[str, Any]:
    """Return the estimate for programs: arrays of equal length in the order of `names`; infinite is null."""
    other, other_error = result.other or (None, None)
    return {
        "estimator": result.estimator,
        "N": result.reports,
        name: list(names),
        "frequency": result.frequency.tolist(),
        "std_error": [_finite(error) for error in result.std_error.tolist()],
        "low": result.low.tolist(),
        "high": result.high.tolist(),
        "significant": result.significant.tolist(),
        "other": other,
        "other_std_error": _finite(other_error),
        "diagnostics": result.diagnostics,
    }


def _finite(figure: float | None) -> float | None:
    return figure if figure is not None and math.isfinite(figure) else None


def table(
    names: Sequence[str], result: Estimate, name: str = "candidate", remainder: int | None = None
) -> str:
    """Return the most frequent values for people; `*` marks significant ones.

    The remainder, see `roll_up_table`, has no interval: at 0, clipping it would leave an interval of width 0.
    """
    head = f"{result.reports} reports, {len(names)} {name}s, 95 % intervals, * significant"
    return "\n".join([head, *_lines(names, [result], name, remainder), *_last(names, result, name)])


def roll_up_table(names: Sequence[str], result: RollUp, name: str, remainder: int | None = None) -> str:
    """Like `table`, with errors under both assumptions about who reported.

    Parameters
    ----------
    names, name : see `table`.
    result : of a period.
    remainder : place of the bucket for all other values among `names`, if there is one.
    """
    independent, shared = result.independent, result.shared
    if shared is independent:
        return table(names, independent, name, remainder)
    head = [
        f"{independent.reports} reports, {len(names)} {name}s, 95 % intervals, * significant",
        "left: if every report comes from another client; right: also valid if the same clients report in",
        "every window",
    ]
    lines = [*_lines(names, [independent, shared], name, remainder), *_last(names, independent, name)]
    if independent.other is not None and shared.other is not None:
        lines[-1] += f" (safe: {shared.other[1]:.6f})"
    return "\n".join([*head, *lines])


def _lines(names: Sequence[str], results: Sequence[Estimate], name: str, remainder: int | None) -> list[str]:
    """Return header and rows; frequencies are those of the first result."""
    order = (-results[0].frequency).argsort(kind="stable")[:SHOWN].tolist()
    printable = {place: _printable(names[place]) for place in order}
    width = max(len(name), *map(len, printable.values()))
    head = f"{name:<{width}} {'frequency':>10}" + f" {'std error':>10} {'low':>9} {'high':>9}  " * len(
        results
    )
    return [head.rstrip()] + [
        f"{printable[place]:<{width}} {results[0].frequency[place]:>10.6f}"
        + "".join(_errors(result, place, place == remainder) for result in results).rstrip()
        for place in order
    ]


def _errors(result: Estimate, place: int, is_remainder: bool) -> str:
    if is_remainder:
        error = float(result.std_error[place])
        return f" {error:>10.6f} {f'± {QUANTILE_975 * error:.6f}':>19}  "
    error, low, high = (float(column[place]) for column in (result.std_error, result.low, result.high))
    return f" {error:>10.6f} {low:>9.6f} {high:>9.6f} {'*' if result.significant[place] else ' '}"


def _last(names: Sequence[str], result: Estimate, name: str) -> list[str]:
    """Return lines about values left out, and about reports that no name explains."""
    lines = []
    if len(names) > SHOWN:
        lines.append(f"and {len(names) - SHOWN} more; --json shows all")
    if result.other is not None:
        screened = len(names) - int(result.diagnostics.get("chosen", len(names)))
        others = f"other strings, and {screened} {name}s not chosen" if screened else "other strings"
        lines.append(f"{others}: {result.other[0]:.6f}, standard error {result.other[1]:.6f}")
    return lines


def _printable(name: str) -> str:
    """Escape a name from a file: it must not control the terminal, nor hide blanks at its ends."""
    return name if name.isprintable() and name == name.strip() else ascii(name)
