"""`deniable estimate rappor`: decode counts that are in files of google/rappor's format."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import click

from deploy.config.text_files import name_of, read_text
from deploy.offline.estimate_krr import estimate
from deploy.offline.estimate_table import record_of, table
from deploy.offline.google_rappor import parse_counts, parse_map, parse_params
from estimators.decoding.bloom import decode_design

# 100,000 candidates that set 128 bits take 64 MB.
MOST_BYTES = 1 << 28

_file = click.File("rb")


@estimate.command("rappor")
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
        click.echo(json.dumps(record_of(candidates, result), allow_nan=False))
    else:
        click.echo(table(candidates, result))


@contextmanager
def _errors_of(file: BinaryIO) -> Iterator[None]:
    """Say which file has what is wrong."""
    try:
        yield
    except ValueError as error:
        raise click.ClickException(f"{name_of(file)}: {error}") from error
