"""`deniable estimate rappor`: decode counts in files of google/rappor's formats."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from deniable.deploy.cli.input_text import name_of, read_text
from deniable.deploy.offline.estimate_krr import estimate
from deniable.deploy.offline.estimate_table import record_of, table
from deniable.deploy.offline.google_rappor import parse_counts, parse_map, parse_params
from deniable.estimators.decoding.bloom import decode_design
from deniable.estimators.detectors.fit import BitNoise, with_fit

# 100,000 candidates that set 128 bits take 64 MB.
MOST_BYTES = 1 << 28

_file = click.File("rb")


@estimate.command("rappor")
@click.option("--params", type=_file, required=True, help="A header k,h,m,p,q,f and a line of values.")
@click.option(
    "--counts", type=_file, required=True, help="A line for each cohort: its reports, then its counts by bit."
)
@click.option(
    "--map",
    "map_",
    type=_file,
    required=True,
    help="A line for each candidate: its name, then bit positions from 1.",
)
@click.option(
    "--no-background",
    is_flag=True,
    help="Assume that all values are candidates; without, other values get a column.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def rappor_command(
    params: BinaryIO, counts: BinaryIO, map_: BinaryIO, no_background: bool, as_json: bool
) -> None:
    """Estimate how frequent each candidate is from the bit counts of each cohort.

    Example: deniable estimate rappor --params p.csv --counts c.csv --map m.csv
    """
    with _errors_of(params):
        parameters = parse_params(read_text(params, MOST_BYTES))
    with _errors_of(counts):
        bit_counts = parse_counts(read_text(counts, MOST_BYTES), parameters)
    with _errors_of(map_):
        candidates, design = parse_map(read_text(map_, MOST_BYTES), parameters)
    result = with_fit(
        decode_design(bit_counts, design, parameters.h / parameters.k, not no_background),
        bit_counts.ones,
        bit_counts.cohort_sizes,
        BitNoise(parameters.q_star, parameters.p_star, parameters.h, parameters.k),
    )
    if as_json:
        click.echo(json.dumps(record_of(candidates, result), allow_nan=False))
    else:
        click.echo(table(candidates, result, parameters=f"k, h, p, q and f in {name_of(params)}"))


@contextmanager
def _errors_of(file: BinaryIO) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(f"{name_of(file)}: {error}") from error
