"""`deniable check`."""

from pathlib import Path

import click
import msgspec

from deniable.config.describe import describe
from deniable.config.file import CollectionFileError, load
from deniable.deploy.cli.options import config_option
from deniable.deploy.offline.check_facts import FileFacts, facts_of
from deniable.deploy.offline.costs.memory import memory_lines
from deniable.deploy.offline.costs.sharing import DEFAULT_CLIENTS, MOST_CLIENTS, sharing_lines
from deniable.deploy.offline.costs.shuffled_facts import shuffled_facts, shuffled_sentence
from deniable.deploy.offline.file_schema import file_schema


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of sentences.")
@click.option(
    "--schema", is_flag=True, help="Print the JSON Schema of collection files instead, for editors."
)
@click.option(
    "--clients",
    type=click.IntRange(1, MOST_CLIENTS),
    default=DEFAULT_CLIENTS,
    show_default=True,
    help="Expected clients in a window: says how many share a function or counter of local hashing.",
)
@config_option
def check(as_json: bool, schema: bool, clients: int, config: Path) -> None:
    """Check the collection file and show what each collection costs; does not connect.

    A figure that holds if it is known when values change bounds what reports reveal beyond that: they may
    show when.

    Example: deniable check --config deniable.yaml
    """
    if schema:
        click.echo(msgspec.json.format(msgspec.json.encode(file_schema())))
        return
    loaded = load(config)
    try:
        _ = None if loaded.is_without_kafka else loaded.cluster
        refusal = None
    except CollectionFileError as error:  # other commands may get the missing fields from their environment
        refusal = str(error)
    if as_json:
        found = FileFacts(1, [facts_of(each, loaded.relay, clients) for each in loaded.allowances], refusal)
        click.echo(msgspec.json.format(msgspec.json.encode(found)))
        return
    for allowance in loaded.allowances:
        click.echo(describe(allowance))
        for line in (*sharing_lines(allowance.collection, clients), *memory_lines(allowance.collection)):
            click.echo(f"  {line}")
        if loaded.relay is not None:
            facts = shuffled_facts(allowance, loaded.relay)
            click.echo(f"  {shuffled_sentence(facts, loaded.relay)}")
    if refusal is not None:
        click.echo(f"commands that connect would refuse this: {refusal}", err=True)
