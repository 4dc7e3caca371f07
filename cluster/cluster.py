"""The Kafka cluster and how to connect to it: settings of every client."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deniable.cluster.loopback import is_loopback as is_loopback
from deniable.cluster.security import Security
from deniable.estimators.errors import DeniableError

#: Of metadata. A leader that was replaced may answer on, and never says so.
LEADERS_MILLISECONDS = 10_000

_LABEL = r"[A-Za-z0-9_-]{1,63}"
_ADDRESS = re.compile(rf"(?:\[([0-9a-fA-F:.]+)\]|({_LABEL}(?:\.{_LABEL})*)):([0-9]{{1,5}})")


def split_addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """Split an address list into host, without brackets, and port of each broker.

    Parameters
    ----------
    bootstrap_servers : HOST:PORT, or several with commas; IPv6 in brackets.

    Raises
    ------
    ValueError that names the address.
    """
    return [_split(address) for address in bootstrap_servers.split(",")]


def _split(address: str) -> tuple[str, int]:
    match = _ADDRESS.fullmatch(address)
    if match is None or not 1 <= int(match[3]) <= 65535:
        shown = f"…@{address.rpartition('@')[2]}" if "@" in address else address  # it may hold a password
        raise ValueError(f"bootstrap_servers must be HOST:PORT with a port in [1, 65535], got {shown!r}")
    return match[1] or match[2], int(match[3])


class PlaintextError(DeniableError, ValueError):
    """The connection would leave this machine unencrypted, which is not allowed."""


@dataclass(frozen=True)
class Cluster:
    """Brokers and how connections to them are secured.

    Parameters
    ----------
    bootstrap_servers : HOST:PORT, or several with commas.
    security : TLS and credentials; None for plaintext connections.
    allow_plaintext : True if plaintext connections to other machines are allowed.

    Raises
    ------
    ValueError if an address is invalid; PlaintextError if one is another machine, without security and
    without allow_plaintext.
    """

    bootstrap_servers: str
    security: Security | None = None
    allow_plaintext: bool = False

    def __post_init__(self) -> None:
        for host, _ in self.addresses():
            if self.security is None and not (self.allow_plaintext or is_loopback(host)):
                raise PlaintextError(
                    f"bootstrap_servers names another machine ({host}) and the connection is not encrypted: "
                    "give security (TLS), or allow_plaintext: true if the network between is trusted"
                )

    def addresses(self) -> list[tuple[str, int]]:
        """Return host and port of each configured broker."""
        return split_addresses(self.bootstrap_servers)

    def check_advertised(self, hosts: Iterable[str]) -> None:
        """Raise PlaintextError if a broker advertises another machine to a plaintext connection."""
        for host in hosts:
            if self.security is None and not (self.allow_plaintext or is_loopback(host)):
                raise PlaintextError(
                    f"Kafka at {self.bootstrap_servers} sends its clients to another machine ({host}: its "
                    "advertised.listeners) and the connection is not encrypted: give security (TLS), or "
                    "allow_plaintext: true if the network between is trusted"
                )

    def client_settings(self) -> dict[str, Any]:
        """Return keywords for kafka-python and aiokafka clients; SecurityError if a file cannot be used."""
        secured = {} if self.security is None else self.security.client_settings()
        return {"bootstrap_servers": self.bootstrap_servers} | secured
