"""Lines for another program, until it has enough of them."""

import asyncio
import os
import stat
import sys

import click


def write_line(line: str | bytes) -> None:
    """Write a line to stdout; end quietly if nobody reads it any more."""
    try:
        click.echo(line)
    except BrokenPipeError:
        _end_quietly()


def end_with_the_reader() -> None:
    """End when the program that reads our stdout ends, even if nothing comes to be written to it."""
    loop, number = asyncio.get_running_loop(), sys.stdout.fileno()

    def end() -> None:
        loop.remove_reader(number)
        _end_quietly()

    if stat.S_ISFIFO(os.fstat(number).st_mode):
        loop.add_reader(number, end)  # a pipe's write end becomes readable when its reader goes


def _end_quietly() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is flushed at the end
    sys.exit(0)
