"""Options that say what a line of input holds, and whether they fit each other and the collection."""

import reprlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from deniable.deploy.produce.input.values import takes_several, takes_two
from deniable.estimators.collection import Collection

Command = TypeVar("Command", bound=Callable[..., Any])

SHOWN = {"--clients": "a cohort and limits of each client", "--time-field": "the window of each event"}


class Delimiter(click.ParamType):
    """One character, not a quote or a line end; a backslash and a t are a tab."""

    name = "character"

    def convert(self, value: str, param: click.Parameter | None, context: click.Context | None) -> str:
        """Return the character."""
        character = "\t" if value == "\\t" else value
        if len(character) != 1 or character in '"\r\n':
            self.fail(
                f"must be one character, not a quote or a line end, got {reprlib.repr(value)}", param, context
            )
        return character


_OPTIONS = (
    click.option(
        "--format",
        "layout",
        type=click.Choice(["csv", "jsonl"]),
        default="csv",
        show_default=True,
        help="csv, whose first line names the columns, or jsonl, an object a line.",
    ),
    click.option(
        "--delimiter",
        type=Delimiter(),
        help="Character between the cells of csv, such as ';' or '\\t' for a tab.  [default: ,]",
    ),
    click.option(
        "--field",
        required=True,
        metavar="NAME",
        help="Column or field that holds the value; of JSON lines also a dotted path, such as user.plan.",
    ),
    click.option(
        "--second-field",
        metavar="NAME",
        help="Column or field that holds the value of a pair's second field; --field holds that of the "
        "first.",
    ),
    click.option("--clients", metavar="NAME", help="Column or field that holds the client's id."),
    click.option(
        "--no-clients", is_flag=True, help="Every line is a different client: no client limits apply."
    ),
)


def record_options(command: Command) -> Command:
    """Add the options of what a line holds, but for its time."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def unknown_option(elsewhere: str) -> Callable[[Command], Command]:
    """Return the option that decides what is said of values that are not listed.

    Parameters
    ----------
    elsewhere : what happens by default where stderr is no terminal.
    """
    return click.option(
        "--show-unknown/--hide-unknown",
        "shows_unknown",
        default=None,
        help="Say on stderr in coarse words how many values the collection does not list.  [default: only if "
        f"stderr is a terminal; elsewhere {elsewhere}]",
    )


def attended(shows_unknown: bool | None) -> tuple[bool, bool]:
    """Return what follows from `unknown_option`: whether that is said, and whether the reports decide."""
    is_attended = sys.stderr.isatty()
    is_shown = is_attended if shows_unknown is None else shows_unknown
    return is_shown, shows_unknown is None and not is_attended


def check_options(clients: str | None, *, no_clients: bool, layout: str, delimiter: str | None) -> None:
    """Raise UsageError if the options contradict each other, whatever the collection."""
    if (clients is None) != no_clients:
        raise click.UsageError(
            "give either --clients NAME, or --no-clients if every line is a different client"
        )
    if delimiter is not None and layout != "csv":
        raise click.UsageError("--delimiter is of csv, and --format is jsonl: leave it out")


def check_fields(
    collection: Collection,
    layout: str,
    field: str,
    second_field: str | None,
    *,
    clients: str | None,
    time_field: str | None,
) -> None:
    """Raise UsageError if lines with these fields cannot hold values of the collection."""
    name = collection.name
    if collection.canary:
        raise click.UsageError(f"{name} is a canary, whose values are random: use deniable canary {name}")
    if layout == "csv" and takes_several(collection):
        raise click.UsageError(f"a value of {name} is a list of texts: give JSON lines, --format jsonl")
    if takes_two(collection) != (second_field is not None):
        names = " and ".join(each.name for each in collection.fields)
        raise click.UsageError(
            f"{name} is a pair of {names}: name the columns of both, --field and --second-field"
            if second_field is None
            else f"{name} is no pair of fields: it takes no --second-field"
        )
    _check_value_fields([field, second_field], {"--clients": clients, "--time-field": time_field})
    if second_field == field:
        first, second = (each.name for each in collection.fields)
        raise click.UsageError(
            f"--field and --second-field must name different columns, of {first} and of {second}, got "
            f"'{field}' for both"
        )


def _check_value_fields(values: Sequence[str | None], others: Mapping[str, str | None]) -> None:
    """Raise UsageError if an option whose field shows in what is sent names the field of a value."""
    for option, name in others.items():
        if name is not None and name in values:
            raise click.UsageError(
                f"{option} must name another field than that of the value, got '{name}' for both: reports "
                f"show {SHOWN[option]} without noise, so each value could be seen"
            )
