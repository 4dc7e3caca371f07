"""Measure all parts, or some, and write the results: python -m bench.comparison [--quick] [--only PART]."""

import logging
import signal
import sys
import time

import click

from bench.comparison.failures import attempt
from bench.comparison.parts import client, counting, devices, growth, hot_path, recording
from bench.comparison.parts.estimation import estimation
from bench.comparison.parts.streaming import end_to_end
from bench.comparison.peer_environment import install
from bench.comparison.report import results
from bench.comparison.report.figure import ResultsPart
from bench.comparison.timing.rounds import FULL, QUICK

SIGINT_STATUS, SIGTERM_STATUS = 130, 143

#: In the order of the results. Each has `measure(scale)`.
PARTS = {
    "recording": recording,
    "client": client,
    "counting": counting,
    "end_to_end": end_to_end,
    "devices": devices,
    "estimation": estimation,
    "growth": growth,
    "hot_path": hot_path,
}


#: Parts that have a file of their own: those of applications, and those of workers.
FILES = {
    "recording": (results.RECORDING, ("recording", "client")),
    "streaming": (results.STREAMING, ("end_to_end",)),
}


@click.command()
@click.option("--quick", is_flag=True, help="Smaller sizes: every goal within three minutes.")
@click.option(
    "--only", type=click.Choice(list(PARTS)), multiple=True, help="These parts; nothing is written."
)
@click.option(
    "--recording",
    "cut",
    flag_value="recording",
    help="Clients, one event a call and in batches: recording.md.",
)
@click.option("--streaming", "cut", flag_value="streaming", help="Workers beside readers: streaming.md.")
def main(quick: bool, only: tuple[str, ...], cut: str | None) -> None:
    """Measure this project and its peers, and write bench/results.md, .json and .png."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_STATUS))  # cleans up folders and children
    logging.getLogger("producers").setLevel(logging.ERROR)  # hides advice to keep the throwaway secrets
    file, names = FILES[cut] if cut else (results.MARKDOWN, tuple(PARTS))
    if not only:
        results.check_writable(file)
    failed = install()
    for peer, why in failed.items():
        click.echo(f"{peer} could not be installed, and is left out: {why}", err=True)
    scale = QUICK if quick else FULL
    parts: list[ResultsPart] = []
    for name in only or names:
        began = time.monotonic()
        click.echo(f"{name} ", err=True, nl=False)
        parts.append(attempt(PARTS[name], scale))
        click.echo(f" {time.monotonic() - began:.0f} s", err=True)
    if only:
        click.echo(results.sections(parts))
    else:
        results.write(parts, failed, scale, file)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("ended, and nothing was written", err=True)
        sys.exit(SIGINT_STATUS)
