"""`deniable decode`: decode the past of a collection of any text with other candidates, or without any."""

from dataclasses import replace
from pathlib import Path

import click

from deniable.analysis.functions.decoding import check_any_text, check_beginnings
from deniable.config.checks import MOST_BYTES
from deniable.config.entries import MOST_CANDIDATES
from deniable.config.file import load
from deniable.config.text_files import lines_of, text_at
from deniable.deploy.cli.options import NumberRange, config_option, servers_option
from deniable.deploy.query.decoding.growing import grown
from deniable.deploy.query.past_windows import (
    all_values_option,
    check_all_values,
    joined_of,
    json_option,
    print_roll_up,
)
from deniable.deploy.query.period_options import period_asked, period_options
from deniable.estimators.frequency.significance import FALSE_DISCOVERY_RATE
from deniable.estimators.mechanisms.mechanism import bloom_of
from deniable.protocol.words import number_of


@click.command()
@click.argument("collection")
@click.option(
    "--candidates",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File of strings to look for, one a line, in UTF-8.",
)
@click.option(
    "--grow", "grows", is_flag=True, help="Find frequent texts of a prefix-tree without candidates."
)
@click.option(
    "--alphabet",
    metavar="TEXT",
    help="With --grow: the characters of the texts; empty for any text.  [default: that of the collection,"
    " else any]",
)
@click.option(
    "--rate",
    type=NumberRange(0, 1, min_open=True, max_open=True),
    metavar="R",
    help="With --grow: expected share of false texts among those found, at most.  [default: 0.05]",
)
@period_options
@all_values_option
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
    for_all: bool,
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
    if grows and for_all:
        raise click.UsageError("--all-values needs --candidates: the intervals of --grow are of texts found")
    check_all_values(for_all=for_all, as_json=as_json)
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    period = period_asked(asked, start, end, last)
    if file is None:
        chosen = asked.alphabet if alphabet is None else alphabet
        grown(loaded, asked, period, chosen, FALSE_DISCOVERY_RATE if rate is None else rate, as_json=as_json)
        return
    check_any_text(asked)
    candidates = _candidates(file)
    check_beginnings(asked, candidates)
    wanted, joined = replace(asked, candidates=tuple(candidates)), joined_of(loaded, asked, period)
    print_roll_up(wanted, period, joined, candidates, "candidate", as_json=as_json, for_all=for_all)
    left_out = set(asked.candidates).difference(candidates, [""])  # a line cannot be an empty text
    if left_out and bloom_of(asked.mechanism) is None and not as_json:
        lacking = number_of(len(left_out), "candidate")
        click.echo(
            f"{file} lacks {lacking} of {collection}: with all of them in the file, errors are smaller",
            err=True,
        )


def _candidates(file: Path) -> list[str]:
    """Read the non-empty lines of the file; errors never quote them."""
    try:
        lines = lines_of(text_at(file, MOST_BYTES))
    except ValueError as error:
        raise click.ClickException(f"--candidates {file} {error}") from error
    if not 1 <= len(lines) <= MOST_CANDIDATES:
        raise click.ClickException(
            f"--candidates {file} must have 1 to {MOST_CANDIDATES} lines, got {len(lines)}"
        )
    if spaced := sum(line != line.strip() for line in lines):
        which = "1 line begins or ends" if spaced == 1 else f"{spaced} lines begin or end"
        click.echo(
            f"warning: --candidates {file}: {which} with blanks, which are part of the strings", err=True
        )
    return lines
