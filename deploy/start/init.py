"""`deniable init`."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from deniable.config.file import DEFAULT_FILE

EVENTS_FILE = "events.csv"
#: For one terminal, and for another one. Without comments: zsh would take them for arguments.
FIRST = ("deniable check", "deniable dev")
SECOND = (
    f"deniable produce plan --input {EVENTS_FILE} --field plan --clients user",
    "deniable watch plan",
)

COLLECTION_FILE = """\
# What your application asks, at which cost of privacy. `deniable check` explains this file.
# An edit takes effect when producers and workers are started again; workers can also take it up on SIGHUP.

collections:
  - name: plan                      # how many users are on which plan?
    mechanism: k-rr                 # reports one of a few values, often not the true one
    values: [free, team, business]  # any other value counts as (other)
    epsilon: 2                      # privacy of one report: less is more private, and less exact
    window_seconds: 30              # an estimate every 30 seconds; take an hour or a day for real
    grace_seconds: 5                # how long after its window a report still counts
    budget:                         # what all reports of one user may cost in a day: about 4 reports
      epsilon: 8
      delta: 1e-6
      period_seconds: 86400

  # Nothing below is needed to begin.
  # Any text, also text that nobody listed: remove the # of these lines.
  # - name: country
  #   mechanism: rappor
  #   bits: 128
  #   hashes: 2
  #   cohorts: 8
  #   epsilon_inf: 4                # privacy of all reports of a user with the same value
  #   epsilon_one: 2                # privacy of one report
  #   candidates: [Austria, Brazil, Canada, Denmark]
  #   window_seconds: 30
  #   grace_seconds: 5
  #   budget: none

# Reports of browsers, phones and machines that reach no Kafka: remove the # of these lines.
# edge:                             # takes their uploads over HTTP
#   allow_origins: ["https://shop.example"]  # whose pages may upload; apps need no entry
# relay:                            # shuffles what edges took, and packs it for the workers
#   delivery_seconds: 2             # of grace_seconds, for this; 20 for real

# kafka:                            # a Kafka of your own; without this, the one that `deniable dev` runs
#   bootstrap_servers: "broker.example:9093"
"""

EVENTS = 20_000
_COUNTRIES = ("Austria", "Brazil", "Canada", "Denmark")


def events() -> Iterator[str]:
    """Yield the lines of the sample: 70 % free, 25 % team, 5 % business, each line another user."""
    yield "user,plan,country"
    for number in range(EVENTS):
        mixed = number * 7919 % 100  # every value equally often, without order
        plan = "free" if mixed < 70 else "team" if mixed < 95 else "business"
        yield f"user-{number + 1},{plan},{_COUNTRIES[number * 31 % 97 % 4]}"


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
