"""The option `--as`, in a separate file: roles import Kafka's client, which most commands do not need."""

from collections.abc import Callable
from typing import Any

import click

from deniable.cluster.permissions.roles import Role

Command = Callable[..., Any]


def role_option(meaning: str) -> Callable[[Command], Command]:
    """Add the option for a role, by default the aggregator; `meaning` is the option's help."""
    return click.option(
        "--as",
        "role",
        type=click.Choice([str(each) for each in Role]),
        default=str(Role.AGGREGATOR),
        show_default=True,
        help=meaning,
    )
