"""`deniable rollup`."""

from pathlib import Path

import click
import msgspec

from aggregator.roll_up import record_of
from deploy.collection_file import load
from deploy.command_options import config_option, servers_option
from deploy.estimate_table import roll_up_table
from deploy.past_windows import from_option, json_option, past_of, to_option


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
    """Answer over many windows: join those that are final and lie whole in a period.

    Example: deniable rollup carrier --from 2026-01-31T00Z --to 2026-02-01T00Z
    """
    loaded = load(config, bootstrap_servers)
    asked = loaded.collection(collection)
    past = past_of(loaded, asked, start, end)
    result = past.roll_up()
    if as_json:
        record = record_of(asked, past.coverage, past.joined, result, whole=True)
        click.echo(msgspec.json.encode(record))
    else:
        past.tell()
    if result is None:
        raise past.refuse()
    if not as_json:
        names = [*asked.labels(), *(["(other)"] if asked.other else [])]
        click.echo(roll_up_table(names, result, "value"))
