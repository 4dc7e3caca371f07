"""Which Kafka, and how to connect to it: what every client is told."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from producers.addresses import is_loopback, split_addresses
from producers.security import Security


class PlaintextError(ValueError):
    """The connection would leave this machine without encryption, and nobody has allowed that."""


@dataclass(frozen=True)
class Cluster:
    """Brokers and how connections to them are secured.

    Parameters
    ----------
    bootstrap_servers : HOST:PORT, or several with commas.
    security : TLS, and who we are; None for connections in clear.
    allow_plaintext : True when connections in clear may go to other machines.

    Raises
    ------
    ValueError if an address is none; PlaintextError if one is another machine, there is no security, and
    nothing else is allowed.
    """

    bootstrap_servers: str
    security: Security | None = None
    allow_plaintext: bool = False

    def __post_init__(self) -> None:
        for host, _ in self.addresses():
            if self.security is None and not (self.allow_plaintext or is_loopback(host)):
                raise PlaintextError(
                    f"bootstrap_servers is another machine ({host}) and the connection is not encrypted: "
                    "give security (TLS), or allow_plaintext: true if the network between is trusted"
                )

    def addresses(self) -> list[tuple[str, int]]:
        """Host and port of each broker that is named."""
        return split_addresses(self.bootstrap_servers)

    def check_advertised(self, hosts: Iterable[str]) -> None:
        """Refuse to go on in clear to another machine that a broker of ours names, with PlaintextError."""
        for host in hosts:
            if self.security is None and not (self.allow_plaintext or is_loopback(host)):
                raise PlaintextError(
                    f"Kafka at {self.bootstrap_servers} sends its clients to another machine ({host}: its "
                    "advertised.listeners) and the connection is not encrypted: give security (TLS), or "
                    "allow_plaintext: true if the network between is trusted"
                )

    def client_settings(self) -> dict[str, Any]:
        """Keywords for clients of kafka-python and aiokafka; SecurityError if a file is of no use."""
        secured = {} if self.security is None else self.security.client_settings()
        return {"bootstrap_servers": self.bootstrap_servers} | secured
