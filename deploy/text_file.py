"""Text of a file that a command is given, however large or little of a text the file is."""

from typing import BinaryIO

import click


def read_text(stream: BinaryIO, most_bytes: int) -> str:
    """Content in UTF-8, with or without a byte order mark.

    Parameters
    ----------
    stream : file or stdin, opened for bytes.
    most_bytes : more is refused, so that a wrong file costs neither time nor memory.

    Raises
    ------
    click.ClickException if there is more, it cannot be read or it is no text.
    """
    name = name_of(stream)
    try:
        content = stream.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise click.ClickException(f"{name} must be of at most {most_bytes} bytes, got more")
        return content.decode("utf-8-sig")
    except OSError as error:
        raise click.ClickException(f"{name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{name} must be text in UTF-8, byte {error.start} is not") from error


def name_of(stream: BinaryIO) -> str:
    """Name of a file, as it was given; that of stdin is not always a text."""
    name = getattr(stream, "name", None)
    return name if isinstance(name, str) and name != "<stdin>" else "stdin"
