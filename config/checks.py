"""Checks of single fields of the collection file: allowed range, value, remedy."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path

from deniable.config.text_files import lines_of, text_at

YEAR_SECONDS = 366 * 86_400
ANY_ORIGIN = "*"
DEFAULT_PORTS = {"http": 80, "https": 443}
ORIGIN = re.compile(r"https?://([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
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


def check_origins(origins: list[str]) -> None:
    """Raise ValueError unless each is an origin as browsers send it; `*` may stand alone."""
    check_distinct("allow_origins", origins)
    if origins == [ANY_ORIGIN]:
        return
    for origin in origins:
        if not ORIGIN.fullmatch(origin):
            raise ValueError(
                "allow_origins must have origins such as https://shop.example, in lower case and without a "
                f"path, or '*' alone, got '{origin}'"
            )


def origin_sent(origin: str) -> str | None:
    """Return an origin as browsers send it: without the port that its scheme implies, and addresses in their
    one form; None if they never send one like it.
    """
    scheme, _, place = origin.partition("://")
    host, port = place, None
    if not place.endswith("]") and ":" in place:
        host, _, text = place.rpartition(":")
        port = int(text)
    try:
        if host.startswith("["):
            host = f"[{IPv6Address(host[1:-1]).compressed}]"
        elif host.rpartition(".")[2].isdigit():
            host = str(IPv4Address(host))
    except ValueError:
        return None
    if port is None or port == DEFAULT_PORTS[scheme]:
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{port}" if 0 < port < 2**16 else None


def read_lines(field: str, file: Path) -> list[str]:
    """Return the non-empty lines of a text file; ValueError if it has none or two alike, or is unreadable."""
    try:
        lines = lines_of(text_at(file, MOST_BYTES))
    except ValueError as error:
        raise ValueError(f"{field} {file} {error}") from error
    if not lines:
        raise ValueError(f"{field} {file} must hold at least one line, got none")
    return lines
