"""Checks of single fields of the collection file: allowed range, value, remedy."""

from collections.abc import Iterable
from io import BytesIO, TextIOWrapper
from pathlib import Path

YEAR_SECONDS = 366 * 86_400
MOST_BYTES = 1 << 26  # of a file; a million candidates of 64 bytes


def check_range(field: str, value: float, lowest: float, highest: float) -> None:
    """Raise ValueError unless a value is in [lowest, highest]."""
    if not lowest <= value <= highest:
        raise ValueError(f"{field} must be in [{lowest}, {highest}], got {value}")


def check_distinct(field: str, texts: Iterable[str]) -> None:
    """Raise ValueError where a text stands twice."""
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise ValueError(f"{field} must be distinct, got '{text}' twice")
        seen.add(text)


def read_lines(field: str, file: Path) -> list[str]:
    """Lines of a text file, empty ones left out; ValueError when it cannot be read or holds none."""
    try:
        # Not splitlines(): it takes characters for line ends that may stand within a candidate.
        lines = [line for line in read_text(file).split("\n") if line]
    except OSError as error:
        raise ValueError(f"{field} {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{field} {file} must be UTF-8: {error.reason}") from error
    except ValueError as error:
        raise ValueError(f"{field} {file}: {error}") from error
    if not lines:
        raise ValueError(f"{field} {file} must hold at least one line, got none")
    return lines


def read_text(file: Path) -> str:
    """A file in UTF-8, with or without a byte order mark, whatever its line ends.

    Raises
    ------
    ValueError when it is longer than MOST_BYTES, without reading on; OSError and UnicodeDecodeError.
    """
    with file.open("rb") as opened:
        data = opened.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"a file must hold at most {MOST_BYTES} bytes, got more")
    return TextIOWrapper(BytesIO(data), encoding="utf-8-sig").read()
