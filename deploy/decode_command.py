"""`deniable decode`: the past of a RAPPOR collection with other candidates than those of its file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from deploy.collection_entries import MOST_CANDIDATES
from deploy.collection_fields import MOST_BYTES
from deploy.collection_file import load
from deploy.command_options import config_option, servers_option
from deploy.estimate_table import record_of, roll_up_table
from deploy.past_windows import Past, from_option, json_option, past_of, to_option
from deploy.text_file import text_at
from estimators.rappor import Rappor
from estimators.rollup import RollUp


@click.command()
@click.argument("collection")
@click.option(
    "--candidates",
    "file",
    type=click.Path(path_type=Path, readable=False),
    required=True,
    help="The strings to look for, one a line, in UTF-8.",
)
@from_option
@to_option
@json_option
@config_option
@servers_option
def decode(
    collection: str,
    file: Path,
    start: str,
    end: str | None,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Look for strings that nobody thought of then in the final windows of a period.

    Example: deniable decode place --candidates m.csv --from 2026-01-31T00Z
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    if not isinstance(asked.mechanism, Rappor):
        raise click.ClickException(
            f"decode takes a collection of mechanism rappor, got {collection} of {asked.mechanism.name}: its "
            f"values were fixed when they were randomized; use deniable rollup {collection}"
        )
    candidates = _candidates(file)
    past = past_of(loaded, replace(asked, candidates=tuple(candidates)), start, end)
    result = past.roll_up()
    if not as_json:
        past.tell()
    if result is None:
        raise past.refuse()
    if as_json:
        click.echo(json.dumps(_record(candidates, past, result), allow_nan=False))
    else:
        click.echo(roll_up_table(candidates, result, "candidate"))


def _candidates(file: Path) -> list[str]:
    """Lines of the file, empty ones left out; of what they hold, nothing is told."""
    try:
        lines = text_at(file, MOST_BYTES).split("\n")
    except ValueError as error:
        raise click.ClickException(f"--candidates {file} {error}") from error
    first: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if line and first.setdefault(line, number) != number:
            raise click.ClickException(
                f"--candidates {file}: lines must be distinct, line {number} repeats line {first[line]}"
            )
    if not 1 <= len(first) <= MOST_CANDIDATES:
        raise click.ClickException(
            f"--candidates {file} must hold 1 to {MOST_CANDIDATES} lines, got {len(first)}"
        )
    return list(first)


def _record(candidates: list[str], past: Past, result: RollUp) -> dict[str, Any]:
    """As of `estimate rappor`, with the errors of either assumption on who reported."""
    shared = record_of(candidates, result.shared)
    del shared["candidate"]
    return {
        "collection": past.collection.name,
        "fingerprint": f"{past.collection.fingerprint:016x}",
        "coverage": msgspec.to_builtins(past.coverage),
        **record_of(candidates, result.independent),
        "overlap": result.overlap,
        "shared": shared,
    }
