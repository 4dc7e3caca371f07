"""`deniable decode`: decode the past of a collection of any text with other candidates, or without any."""

from dataclasses import replace
from pathlib import Path

import click

from deploy.cli.options import NumberRange, config_option, servers_option
from deploy.config.checks import MOST_BYTES
from deploy.config.entries import MOST_CANDIDATES
from deploy.config.file import load
from deploy.config.text_files import text_at
from deploy.query.decoding.growing import grown
from deploy.query.past_windows import json_option, past_of
from deploy.query.period_options import period_asked, period_options
from estimators.collection import ANY_TEXT
from estimators.frequency.significance import FALSE_DISCOVERY_RATE


@click.command()
@click.argument("collection")
@click.option(
    "--candidates",
    "file",
    type=click.Path(path_type=Path, readable=False),
    help="File of strings to look for, one a line, in UTF-8.",
)
@click.option(
    "--grow", "grows", is_flag=True, help="Find frequent texts of a prefix-tree without candidates."
)
@click.option(
    "--alphabet",
    metavar="TEXT",
    help="With --grow: the characters of the texts.  [default: that of the collection, else any]",
)
@click.option(
    "--rate",
    type=NumberRange(0, 1, min_open=True, max_open=True),
    metavar="R",
    help="With --grow: expected share of false texts among those found, at most.  [default: 0.05]",
)
@period_options
@json_option
@config_option
@servers_option
def decode(
    collection: str,
    file: Path | None,
    grows: bool,
    alphabet: str | None,
    rate: float | None,
    start: str | None,
    end: str | None,
    last: int | None,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Look for other strings in the final windows of a period, or find frequent ones.

    Example: deniable decode place --candidates m.csv --last 30d
    """
    if grows == (file is not None):
        raise click.UsageError("give either --candidates FILE or --grow")
    if not grows and (alphabet is not None or rate is not None):
        raise click.UsageError("--alphabet and --rate need --grow")
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    period = period_asked(asked, start, end, last)
    if file is None:
        chosen = asked.alphabet if alphabet is None else alphabet
        grown(loaded, asked, period, chosen, FALSE_DISCOVERY_RATE if rate is None else rate, as_json=as_json)
        return
    if not isinstance(asked.mechanism, ANY_TEXT):
        raise click.ClickException(
            "decode needs a collection with mechanism rappor, local-hash, local-hash-longitudinal or "
            f"prefix-tree, got {collection} with {asked.mechanism.name}, whose values cannot change later; "
            f"use deniable rollup {collection}"
        )
    candidates = _candidates(file)
    past = past_of(loaded, replace(asked, candidates=tuple(candidates)), period)
    past.answer(candidates, "candidate", as_json=as_json)


def _candidates(file: Path) -> list[str]:
    """Read the non-empty lines of the file; errors never quote them."""
    try:
        lines = text_at(file, MOST_BYTES).split("\n")
    except ValueError as error:
        raise click.ClickException(f"--candidates {file} {error}") from error
    first: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if line and first.setdefault(line, number) != number:
            raise click.ClickException(
                f"--candidates {file}: lines must be distinct, line {number} repeats line {first[line]}; "
                "sort -u keeps one of each"
            )
    if not 1 <= len(first) <= MOST_CANDIDATES:
        raise click.ClickException(
            f"--candidates {file} must have 1 to {MOST_CANDIDATES} lines, got {len(first)}"
        )
    if spaced := sum(line != line.strip() for line in first):
        click.echo(
            f"warning: --candidates {file}: {spaced} lines begin or end with blanks, which are part of the "
            "strings",
            err=True,
        )
    return list(first)
