"""`deniable rollup`."""

from pathlib import Path

import click

from deploy.cli.options import config_option, servers_option
from deploy.config.file import load
from deploy.query.past_windows import from_option, json_option, past_of, to_option


@click.command()
@click.argument("collection")
@from_option
@to_option
@json_option
@config_option
@servers_option
def rollup(
    collection: str, start: str, end: str | None, as_json: bool, config: Path, bootstrap_servers: str | None
) -> None:
    """Estimate over a period: join its final windows.

    Example: deniable rollup carrier --from 2026-01-31T00Z --to 2026-02-01T00Z
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    names = [*asked.labels(), *(["(other)"] if asked.other else [])]
    past_of(loaded, asked, start, end).answer(names, "value", as_json=as_json)
