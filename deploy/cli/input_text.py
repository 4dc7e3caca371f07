"""The text of a file that a command is given, and text that a terminal may be shown."""

from typing import BinaryIO

import click

from deniable.config.text_files import text_of


def read_text(stream: BinaryIO, most_bytes: int) -> str:
    """Like `text_of`, for a command's input file or stdin; click.ClickException that names it."""
    try:
        return text_of(stream, most_bytes)
    except ValueError as error:
        raise click.ClickException(f"{name_of(stream)} {error}") from error


def name_of(stream: BinaryIO) -> str:
    """Return a file's name as given by the user; "stdin" if it has no textual name."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and name != "<stdin>" else "stdin"


def printable(text: str) -> str:
    """Return a text with what a terminal would obey, or nobody could see, as escapes of Python."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text
    )
