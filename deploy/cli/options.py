"""Options that several commands take."""

import math
import re
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from deniable.config.file import DEFAULT_FILE
from deniable.deploy.cli.listen_address import ListenAddress

# Not `readable`: click would report an unreadable file as wrong usage, but not an absent one.
CONFIG_PATH = click.Path(path_type=Path, readable=False)


class Folder(click.Path):
    """A folder. An empty text, as from an unset shell variable, does not mean the current one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Refuse the empty text."""
        if value == "":
            self.fail("must not be empty", parameter, context)
        return super().convert(value, parameter, context)


class NumberRange(click.FloatRange):
    """A finite number in a range; `nan` compares as neither below nor above it."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Any:
        """Refuse nan and inf."""
        number = super().convert(value, parameter, context)
        if not math.isfinite(number):
            self.fail(f"must be a finite number, got {value}", parameter, context)
        return number


def refuse_alone(option: str, needed: str) -> None:
    """Refuse an option that was given and does nothing without another one; click.UsageError."""
    source = click.get_current_context().get_parameter_source(option.strip("-").replace("-", "_"))
    if source is not ParameterSource.DEFAULT:
        raise click.UsageError(f"{option} needs {needed}")


def with_options(message: str) -> str:
    """Name the parameters of a message as the options of the present command: epsilon_one, --epsilon-one."""
    names = [each.name for each in click.get_current_context().command.params if each.name]
    pattern = rf"(?<![\w-])({'|'.join(sorted(names, key=len, reverse=True))})(?= must| = )"
    return re.sub(pattern, lambda found: f"--{found[1].replace('_', '-')}", message)


config_option = click.option(
    "--config", type=CONFIG_PATH, default=DEFAULT_FILE, show_default=True, help="The collection file."
)
metrics_port_option = click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics, /healthz and /readyz on this loopback port; 0: a free one, printed.",
)
metrics_listen_option = click.option(
    "--metrics-listen",
    type=ListenAddress(),
    metavar="ADDRESS:PORT",
    help="Serve /metrics, /healthz and /readyz here too, for scrapes and probes from other machines. Anyone "
    "who reaches it sees all figures, estimates included. Everything else stays on loopback.",
)
servers_option = click.option(
    "--bootstrap-servers", metavar="HOST:PORT", help="An existing Kafka; wins over the collection file."
)
