"""`deniable rollup`."""

from pathlib import Path

import click

from deploy.cli.options import config_option, servers_option
from deploy.config.file import load
from deploy.query.past_windows import json_option, past_of
from deploy.query.period_options import period_asked, period_options


@click.command()
@click.argument("collection")
@period_options
@json_option
@config_option
@servers_option
def rollup(
    collection: str,
    start: str | None,
    end: str | None,
    last: int | None,
    as_json: bool,
    config: Path,
    bootstrap_servers: str | None,
) -> None:
    """Estimate over a period, the last day by default: join its final windows.

    Example: deniable rollup carrier --last 7d
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    names = [*asked.labels(), *(["(other)"] if asked.other else [])]
    past_of(loaded, asked, period_asked(asked, start, end, last)).answer(names, "value", as_json=as_json)
