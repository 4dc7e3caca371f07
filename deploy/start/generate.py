"""`deniable generate`: typed functions for a file's collections, so that an editor finds what is misspelt."""

import json
import keyword
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from deniable.config.file import Configuration, load
from deniable.deploy.cli.options import config_option
from deniable.estimators.collection import OTHER_LABEL, Collection

#: Type checkers become slow with longer lists; any text is accepted instead.
MOST_LISTED = 1000
PYTHON_LINE = 100  # longest line of generated Python, unless a single value is longer
_TYPE_ITEM = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])+,?')

PYTHON = '''\
"""Typed events of a collection file.

Made by `deniable generate --python`: make it again after an edit.
"""

from collections.abc import Set as AbstractSet
from typing import Literal, Protocol

import deniable


class Recorder(Protocol):
    """A `deniable.Producer`, or a double of `deniable.testing`."""

    def record(
        self,
        collection: str,
        value: deniable.EventValue,
        client: str | int | None = None,
        at: deniable.EventTime = None,
    ) -> None:
        """Record one event."""


class Events:
    """Record events, each by the function of its collection.

    `Events(producer).{first}(value)`

    Parameters
    ----------
    producer : to record with.
    """

    def __init__(self, producer: Recorder) -> None:
        self._producer = producer
'''
PYTHON_EVENT = '''
    def {function}(
        self,
        value: {type},
        client: str | int | None = None,
        at: deniable.EventTime = None,
    ) -> None:
        """Record one event: see `Producer.record`."""
        self._producer.record(
            "{collection}", value, client, at
        )
'''
TYPESCRIPT = """\
// Typed events of a collection file. Made by `deniable generate --typescript`: make it again after an edit.
import type {{ Client, Outcome }} from "deniable-browser";

/** What each collection takes. */
export interface Values {{
{fields}
}}

/** A client that takes only these collections and values. */
export interface TypedClient extends Omit<Client, "report"> {{
  report<Name extends keyof Values>(collection: Name, value: Values[Name]): Promise<Outcome>;
}}

/** @returns the same client */
export const typed = (client: Client): TypedClient => client as TypedClient;
"""


@click.command()
@click.option("--python", is_flag=True, help="A module with a function a collection.")
@click.option("--typescript", is_flag=True, help="Types for the client of web pages.")
@config_option
def generate(python: bool, typescript: bool, config: Path) -> None:
    """Write typed functions for the events of the collection file to standard output.

    Misspelt collections and values then fail in the editor, and in mypy, pyright or tsc. Where a file lists
    values, "(other)" stands for all that it does not list.

    Example: deniable generate --python > events.py
    """
    if python == typescript:
        got = "both: run it once for each" if python else "neither"
        raise click.UsageError(f"give either --python or --typescript, got {got}")
    loaded = load(config)
    click.echo(_python(loaded) if python else _typescript(loaded), nl=False)


def _python(loaded: Configuration) -> str:
    functions = {each.name: _function_name(each.name) for each in loaded.collections}
    for one, function in functions.items():
        for other, same in functions.items():
            if one < other and function == same:
                raise click.ClickException(
                    f"collections {one} and {other} would both be the function {function}; rename one of them"
                )
    events = [
        PYTHON_EVENT.format(
            function=functions[each.name], type=_wrapped(_python_type(each)), collection=each.name
        )
        for each in loaded.collections
    ]
    return PYTHON.format(first=functions[loaded.collections[0].name]) + "".join(events)


def _function_name(collection: str) -> str:
    name = collection.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def _python_type(collection: Collection) -> str:
    match _kind(collection):
        case "number":
            return "float"
        case "integer":
            return "int"
        case "pair":
            return f"tuple[{', '.join(_literal(each.values, each.other) for each in collection.fields)}]"
        case "set":
            return f"AbstractSet[{_literal(collection.values, collection.other)}]"
    return _literal(collection.values, collection.other)


def _wrapped(type_text: str) -> str:
    """Break a type into lines after commas outside of quotes, which Python allows within its brackets."""
    lines = [" " * len("        value: ")]
    for token in _TYPE_ITEM.findall(type_text):
        if lines[-1].strip() and len(lines[-1]) + len(token) >= PYTHON_LINE:
            lines.append(" " * 12)
            token = token.lstrip()
        lines[-1] += token
    return "\n".join(lines).lstrip()


def _literal(values: Sequence[str], other: bool) -> str:
    return f"Literal[{', '.join(_quoted(values, other))}]" if 0 < len(values) <= MOST_LISTED else "str"


def _typescript(loaded: Configuration) -> str:
    fields = [
        f"  {json.dumps(each.name)}: {_typescript_type(each)};"
        if each.mechanism.is_in_browsers
        else f"  // {each.name}: browsers lack mechanism {each.mechanism.name}"
        for each in loaded.collections
    ]
    return TYPESCRIPT.format(fields="\n".join(fields))


def _typescript_type(collection: Collection) -> str:
    match _kind(collection):
        case "number":
            return "number"
        case "integer":
            return "number | bigint"
        case "pair":
            both = (_union(each.values, each.other) for each in collection.fields)
            return f"readonly [{', '.join(both)}]"
        case "set":
            one = _union(collection.values, collection.other)
            return f"readonly ({one})[] | ReadonlySet<{one}>"
    return _union(collection.values, collection.other)


def _union(values: Sequence[str], other: bool) -> str:
    return " | ".join(_quoted(values, other)) if 0 < len(values) <= MOST_LISTED else "string"


def _quoted(values: Sequence[str], other: bool) -> Iterable[str]:
    return map(json.dumps, [*values, *([OTHER_LABEL] if other else [])])


def _kind(collection: Collection) -> str:
    if collection.number is not None:
        return "number"
    if collection.fields:
        return "pair"
    if collection.takes_several:
        return "set"
    return "integer" if collection.takes_integers else "text"
