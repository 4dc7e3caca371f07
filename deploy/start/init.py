"""`deniable init`."""

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from deniable.config.file import DEFAULT_FILE
from deniable.deploy.start.sample import COLLECTION_FILE, EVENTS, events

EVENTS_FILE = "events.csv"
#: For one terminal, and for another one. Without comments: zsh would take them for arguments.
FIRST = ("deniable check", "deniable dev")
SECOND = (
    f"deniable produce plan --input {EVENTS_FILE} --field plan --clients user",
    "deniable watch plan",
)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
def init(folder: Path) -> None:
    """Write a collection file and a sample of events into FOLDER, the current one by default.

    Prints the commands that come next. Existing files are never changed.

    Example: deniable init shop
    """
    texts = {str(DEFAULT_FILE): COLLECTION_FILE, EVENTS_FILE: "\n".join(events()) + "\n"}
    present = [name for name in texts if (folder / name).exists()]
    if present:
        raise click.ClickException(
            f"{folder / present[0]} exists and is left as it is; name another folder: deniable init FOLDER"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or folder} cannot be written: {error.strerror}; name a folder that this user "
            "may write"
        ) from None
    click.echo(f"wrote {folder / DEFAULT_FILE}, and {folder / EVENTS_FILE} with {EVENTS:,} events", err=True)
    enter = () if folder == Path() else (f"cd {shlex.quote(str(folder))}",)
    _print("next, what a report costs; then Kafka, a worker and its page, until Ctrl-C:", [*enter, *FIRST])
    _print("once all runs, in another terminal:", [*enter, *SECOND])
    click.echo("a window's estimate is final 35 s after its start", err=True)


def _print(heading: str, commands: Sequence[str]) -> None:
    """Print a heading on stderr and commands on stdout."""
    click.echo(f"\n{heading}\n", err=True)
    for command in commands:
        click.echo(command)
