"""Text of a file, however large or little of a text the file is."""

from pathlib import Path
from typing import BinaryIO

import click


def text_of(stream: BinaryIO, most_bytes: int) -> str:
    """Content in UTF-8, with or without a byte order mark; its lines end with a line feed, whatever they did.

    Parameters
    ----------
    stream : opened for bytes.
    most_bytes : more is refused, so that a wrong file costs neither time nor memory.

    Raises
    ------
    ValueError, whose message follows the file's name in a sentence, if there is more, it cannot be read or it
    is no text.
    """
    try:
        content = stream.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise ValueError(f"must be of at most {most_bytes} bytes, got more")
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"must be text in UTF-8, byte {error.start} is not") from error


def text_at(path: Path, most_bytes: int) -> str:
    """As `text_of`, of the file of this name; ValueError too if it cannot be opened."""
    try:
        with path.open("rb") as stream:
            return text_of(stream, most_bytes)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error


def read_text(stream: BinaryIO, most_bytes: int) -> str:
    """As `text_of`, of a file or stdin that a command was given; click.ClickException that names it."""
    try:
        return text_of(stream, most_bytes)
    except ValueError as error:
        raise click.ClickException(f"{name_of(stream)} {error}") from error


def name_of(stream: BinaryIO) -> str:
    """Name of a file, as it was given; that of stdin is not always a text."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and name != "<stdin>" else "stdin"
