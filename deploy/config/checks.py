"""Checks of single fields of the collection file: allowed range, value, remedy."""

from collections.abc import Iterable
from pathlib import Path

from deploy.config.text_files import text_at

YEAR_SECONDS = 366 * 86_400
MOST_BYTES = 1 << 26  # of a file; a million candidates of 64 bytes


def check_range(field: str, value: float, lowest: float, highest: float) -> None:
    """Raise ValueError unless a value is in [lowest, highest]."""
    if not lowest <= value <= highest:
        raise ValueError(f"{field} must be in [{lowest}, {highest}], got {value}")


def check_distinct(field: str, texts: Iterable[str]) -> None:
    """Raise ValueError if a text occurs twice."""
    seen: set[str] = set()
    for text in texts:
        if text in seen:
            raise ValueError(f"{field} must be distinct, got '{text}' twice")
        seen.add(text)


def read_lines(field: str, file: Path) -> list[str]:
    """Return the non-empty lines of a text file; ValueError if it cannot be read or has none."""
    try:
        text = text_at(file, MOST_BYTES)
    except ValueError as error:
        raise ValueError(f"{field} {file} {error}") from error
    # Not splitlines(): it also splits at characters that a candidate may contain.
    lines = [line for line in text.split("\n") if line]
    if not lines:
        raise ValueError(f"{field} {file} must hold at least one line, got none")
    return lines
