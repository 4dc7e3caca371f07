"""`deniable init`."""

import shlex
from pathlib import Path

import click

from deploy.config.file import DEFAULT_FILE
from deploy.start.sample import COLLECTION_FILE, EVENTS, events

EVENTS_FILE = "events.csv"
NEXT = f"""\
deniable check          # what a report costs
deniable dev            # Kafka, a worker and its page, until Ctrl-C; go on in another terminal
deniable produce plan --input {EVENTS_FILE} --field plan --clients user
deniable watch plan     # a window is final 35 s after its start; or open the page\
"""


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
    click.echo(
        f"wrote {folder / DEFAULT_FILE}, and {folder / EVENTS_FILE} with {EVENTS:,} events. Next:\n", err=True
    )
    if folder != Path():
        click.echo(f"cd {shlex.quote(str(folder))}")
    click.echo(NEXT)
