"""`deniable estimate rappor`: decode counts that are in files of google/rappor's format."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from deploy.text_file import name_of, read_text
from estimators.estimate import Estimate
from estimators.google_rappor import parse_counts, parse_map, parse_params
from estimators.rappor_decode import decode_design

SHOWN = 50  # lines of the table, the most frequent first

# 100,000 candidates that set 128 bits take 64 MB.
MOST_BYTES = 1 << 28

_file = click.File("rb")


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
def rappor_command(
    params: BinaryIO, counts: BinaryIO, map_: BinaryIO, no_background: bool, as_json: bool
) -> None:
    """Estimate how often each candidate was true from the bit counts of each cohort.

    Example: deniable estimate rappor --params p.csv --counts c.csv --map m.csv
    """
    with _errors_of(params):
        parameters = parse_params(read_text(params, MOST_BYTES))
    with _errors_of(counts):
        bit_counts = parse_counts(read_text(counts, MOST_BYTES), parameters)
    with _errors_of(map_):
        candidates, design = parse_map(read_text(map_, MOST_BYTES), parameters)
    result = decode_design(bit_counts, design, parameters.h / parameters.k, not no_background)
    if as_json:
        click.echo(json.dumps(_record(candidates, result), allow_nan=False))
    else:
        click.echo(_table(candidates, result))


@contextmanager
def _errors_of(file: BinaryIO) -> Iterator[None]:
    """Say which file has what is wrong."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(f"{name_of(file)}: {error}") from error


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


def _printable(name: str) -> str:
    """A candidate from a file must not steer the terminal."""
    return name if name.isprintable() else ascii(name)


def _finite(figure: float | None) -> float | None:
    return figure if figure is not None and math.isfinite(figure) else None


def _table(candidates: list[str], result: Estimate) -> str:
    """The most frequent candidates for people, `*` behind those that are significant."""
    order = (-result.frequency).argsort(kind="stable")[:SHOWN].tolist()
    names = {place: _printable(candidates[place]) for place in order}
    width = max(len("candidate"), *map(len, names.values()))
    lines = [f"{result.reports} reports, {len(candidates)} candidates, 95 % intervals, * significant"]
    lines.append(f"{'candidate':<{width}} {'frequency':>10} {'std error':>10} {'low':>9} {'high':>9}")
    for place in order:
        figures = (result.frequency, result.std_error, result.low, result.high)
        frequency, error, low, high = (float(column[place]) for column in figures)
        star = " *" if result.significant[place] else ""
        name = f"{names[place]:<{width}}"
        lines.append(f"{name} {frequency:>10.6f} {error:>10.6f} {low:>9.6f} {high:>9.6f}{star}")
    if len(candidates) > SHOWN:
        lines.append(f"and {len(candidates) - SHOWN} more; --json shows all")
    if result.other is not None:
        screened = len(candidates) - int(result.diagnostics.get("chosen", len(candidates)))
        held = f"other strings, and {screened} candidates not chosen" if screened else "other strings"
        lines.append(f"{held}: {result.other[0]:.6f}, standard error {result.other[1]:.6f}")
    return "\n".join(lines)
