"""The edge that a producer delivers to."""

import base64
import binascii
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from deniable.cluster.cluster import is_loopback

KEY_BYTES = 32
PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9a-fA-F.]*:[0-9a-fA-F:.]*")
_PATH = re.compile(r"[A-Za-z0-9._~/-]*")


@dataclass(frozen=True)
class EdgeAddress:
    """Where uploads go, and how the edge is known to be the right one.

    Parameters
    ----------
    url : such as https://edge.example, with a path if the edge is below one; http only to this machine.
    ca_file : CA certificates that must have signed the edge's, PEM; None: those that this system trusts.
    public_key : of the edge's list of collections, base64 of 32 bytes; None: its signature is not checked.

    Raises
    ------
    ValueError with the field's name, what is allowed, and the value unless it may hold a password.
    """

    url: str
    ca_file: Path | None = None
    public_key: str | None = None

    def __post_init__(self) -> None:
        _check(self.url)
        if self.ca_file is not None and not self.is_secured:
            raise ValueError(f"edge_ca_file needs an https:// URL in deliver, got {self.url}")
        if self.public_key is not None:
            _ = self.key

    @property
    def is_secured(self) -> bool:
        """Whether connections use TLS."""
        return self._parts.scheme == "https"

    @property
    def host(self) -> str:
        """Name or address, IPv6 without brackets."""
        return self._parts.hostname or ""

    @property
    def port(self) -> int:
        """TCP port."""
        return self._parts.port or PORTS[self._parts.scheme]

    @property
    def base_path(self) -> str:
        """Path that precedes those of the protocol; empty or `/…` without a slash at the end."""
        return self._parts.path.rstrip("/")

    @property
    def key(self) -> bytes:
        """The public key, 32 bytes; ValueError if it is none."""
        try:
            key = base64.b64decode(self.public_key or "", validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if len(key) != KEY_BYTES:
            raise ValueError(
                "edge_public_key must be the base64 text of 32 bytes that deniable edge --show-key prints, "
                f"got {self.public_key!r}"
            )
        return key

    @property
    def is_on_this_machine(self) -> bool:
        """Whether the edge is on this machine, judged by its address."""
        return is_loopback(self.host)

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)


def _check(url: str) -> None:
    shown = f"…@{url.rpartition('@')[2]}" if "@" in url else url  # it may hold a password
    wrong = (
        f"deliver must be kafka, or the URL of an edge such as https://edge.example, without user, query and "
        f"fragment, got {shown!r}"
    )
    try:
        parts = urlsplit(url)
        is_port = parts.port is None or 1 <= parts.port <= 65535
    except ValueError:
        raise ValueError(wrong) from None
    is_plain = url.isascii() and url.isprintable() and not any(each in url for each in "@?# \\")
    is_host = parts.hostname is not None and _HOST.fullmatch(parts.hostname) is not None
    if not (parts.scheme in PORTS and is_plain and is_port and is_host and _PATH.fullmatch(parts.path)):
        raise ValueError(wrong)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError(
            "deliver must be an https:// URL unless the edge is on this machine (127.0.0.1, ::1, localhost), "
            f"got {url}: reports would leave this machine unencrypted"
        )
