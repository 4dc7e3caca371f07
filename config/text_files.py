"""Read text files of limited size."""

from pathlib import Path
from typing import BinaryIO


class UnreadableFileError(ValueError):
    """A file is absent, or cannot be opened or read. The message completes a sentence, as in `text_of`."""


def text_of(stream: BinaryIO, most_bytes: int) -> str:
    """Return the content, decoded from UTF-8 with or without a byte order mark; line ends become line feeds.

    Parameters
    ----------
    stream : opened for bytes.
    most_bytes : larger files are refused, so that a wrong file costs neither time nor memory.

    Raises
    ------
    ValueError, whose message completes a sentence that begins with the file's name, if the file is too large
    or not text; UnreadableFileError if it cannot be read.
    """
    try:
        content = stream.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise ValueError(f"must have at most {most_bytes} bytes, got more")
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"must be text in UTF-8, byte {error.start} is not") from error


def text_at(path: Path, most_bytes: int) -> str:
    """Like `text_of`, for the file at a path; UnreadableFileError too if it cannot be opened."""
    try:
        with path.open("rb") as stream:
            return text_of(stream, most_bytes)
    except OSError as error:
        raise UnreadableFileError(f"cannot be read: {error.strerror}") from error


def lines_of(text: str) -> list[str]:
    """Return the non-empty lines; ValueError with the numbers of two, as in `text_of`, if they are alike.

    Not splitlines(): it also splits at characters that a line may contain.
    """
    first: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if line and first.setdefault(line, number) != number:
            raise ValueError(
                f"must have distinct lines, line {number} repeats line {first[line]}; sort -u keeps one of "
                "each"
            )
    return list(first)
