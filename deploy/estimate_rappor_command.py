"""`deniable estimate rappor`: decode counts that are in files of google/rappor's format."""

import json
import math
from pathlib import Path
from typing import Any

import click

from estimators.estimate import Estimate
from estimators.google_rappor import parse_counts, parse_map, parse_params
from estimators.rappor_decode import decode_design

SHOWN = 50  # lines of the table, the most frequent first

_file = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("rappor")
@click.option("--params", type=_file, required=True, help="A header k,h,m,p,q,f and a line of values.")
@click.option(
    "--counts", type=_file, required=True, help="A line a cohort: reports, then counts of its bits."
)
@click.option(
    "--map", "map_", type=_file, required=True, help="A line a candidate: name, then one-based bit positions."
)
@click.option("--no-background", is_flag=True, help="Every report is of a candidate: no column for others.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of a table.")
def rappor_command(params: Path, counts: Path, map_: Path, no_background: bool, as_json: bool) -> None:
    """Estimate how often each candidate was true from the bit counts of each cohort.

    Example: deniable estimate rappor --params p.csv --counts c.csv --map m.csv
    """
    try:
        parameters = parse_params(_read(params))
        bit_counts = parse_counts(_read(counts), parameters)
        candidates, design = parse_map(_read(map_), parameters)
        result = decode_design(bit_counts, design, parameters.h / parameters.k, not no_background)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(_record(candidates, result), allow_nan=False))
    else:
        click.echo(_table(candidates, result))


def _read(path: Path) -> str:
    """Content of a file in UTF-8, with or without a byte order mark."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path} must be text in UTF-8") from error


def _record(candidates: list[str], result: Estimate) -> dict[str, Any]:
    """The estimate for programs: arrays of equal length in the order of the map; infinite ones are null."""
    other, other_error = result.other or (None, None)
    return {
        "estimator": result.estimator,
        "N": result.reports,
        "candidate": candidates,
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


def _table(candidates: list[str], result: Estimate) -> str:
    """The most frequent candidates for people, `*` behind those that are significant."""
    order = (-result.frequency).argsort(kind="stable")[:SHOWN].tolist()
    width = max(len("candidate"), *(len(candidates[place]) for place in order))
    lines = [f"{result.reports} reports, {len(candidates)} candidates, 95 % intervals, * significant"]
    lines.append(f"{'candidate':<{width}} {'frequency':>10} {'std error':>10} {'low':>9} {'high':>9}")
    for place in order:
        figures = (result.frequency, result.std_error, result.low, result.high)
        frequency, error, low, high = (float(column[place]) for column in figures)
        star = " *" if result.significant[place] else ""
        name = f"{candidates[place]:<{width}}"
        lines.append(f"{name} {frequency:>10.6f} {error:>10.6f} {low:>9.6f} {high:>9.6f}{star}")
    if len(candidates) > SHOWN:
        lines.append(f"and {len(candidates) - SHOWN} more; --json shows all")
    if result.other is not None:
        lines.append(f"other strings: {result.other[0]:.6f}, standard error {result.other[1]:.6f}")
    return "\n".join(lines)
