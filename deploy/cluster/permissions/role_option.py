"""The option `--as`, of its own file: roles load Kafka's client, which most commands can do without."""

from collections.abc import Callable
from typing import Any

import click

from deploy.cluster.permissions.roles import Role

Command = Callable[..., Any]


def role_option(meaning: str) -> Callable[[Command], Command]:
    """Ask for a role, the aggregator's by default; `meaning` is the option's help."""
    return click.option(
        "--as",
        "role",
        type=click.Choice([str(each) for each in Role]),
        default=str(Role.AGGREGATOR),
        show_default=True,
        help=meaning,
    )
