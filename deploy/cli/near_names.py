"""Name the nearest known name when a subcommand or a choice is misspelt."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

import click


def with_nearest(error: click.ClickException) -> click.ClickException:
    """Add `Did you mean …?` to an error about an unknown subcommand or choice, if a known one is near.

    Parameters
    ----------
    error : of click; its message may be changed.
    """
    if not isinstance(error, click.UsageError) or "Did you mean" in error.message or error.ctx is None:
        return error
    wrong = re.match(r"No such command '(.*?)'\.|'(.*?)' is not one of ", error.message)
    if wrong and (near := get_close_matches(wrong[1] or wrong[2], _known(error), 1)):
        error.message += f" Did you mean '{near[0]}'?"
    return error


def _known(error: click.UsageError) -> Iterable[str]:
    if isinstance(error, click.BadParameter):
        kind = None if error.param is None else error.param.type
        return list(map(str, kind.choices)) if isinstance(kind, click.Choice) else []
    group = None if error.ctx is None else error.ctx.command
    return group.list_commands(error.ctx) if isinstance(group, click.Group) and error.ctx else []
