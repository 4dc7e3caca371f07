"""Print lines to a pipe, and end quietly when its reader is gone."""

import asyncio
import os
import select
import stat
import sys

import click


def write_line(line: str | bytes) -> None:
    """Write a line to stdout; exit quietly if its reader is gone."""
    try:
        click.echo(line)
    except BrokenPipeError:
        _end_quietly()


def end_with_the_reader() -> None:
    """Exit when the program that reads our stdout ends, even if there is nothing to write."""
    loop, number = asyncio.get_running_loop(), sys.stdout.fileno()

    def end() -> None:
        loop.remove_reader(number)
        _end_quietly()

    if stat.S_ISFIFO(os.fstat(number).st_mode):
        loop.add_reader(number, end)  # a pipe's write end becomes readable when its reader goes


def is_reader_gone() -> bool:
    """Whether stdout is a pipe without a reader."""
    try:
        number = sys.stdout.fileno()
    except (OSError, ValueError):  # no file, or closed
        return False
    poll = select.poll()
    poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _end_quietly() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for Python's flush at exit
    sys.exit(0)
