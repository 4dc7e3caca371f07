"""Which PostgreSQL database has the budgets, and what producers do while it is away."""

from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from deniable.cluster.cluster import PlaintextError, is_loopback

SCHEMES = ("postgresql", "postgres")
VERIFIED = ("verify-ca", "verify-full")
# A password would stand in the file; a service or a host from elsewhere would not be checked here.
REFUSED = ("password", "sslpassword", "service", "hostaddr")
DEFAULT_PORT = "5432"

WhenAway = Literal["wait", "drop"]


@dataclass(frozen=True)
class BudgetDatabase:
    """A PostgreSQL database with the budgets of any number of producers.

    Parameters
    ----------
    url : "postgresql://USER@HOST:PORT/DATABASE?sslmode=verify-full", with further parameters of libpq, but no
        password: libpq takes it from the variable PGPASSWORD or a password file.
    when_away : what happens to reports of clients while the database cannot be used: "wait" in memory, until
        the queue is full; or "drop" at once. Both are counted; none is sent uncharged.
    allow_plaintext : True if unencrypted or unverified connections to other machines are allowed.

    Raises
    ------
    ValueError if the url is invalid or has a password; PlaintextError, a ValueError, if it is another machine
    without sslmode verify-ca or verify-full, and without allow_plaintext.
    """

    url: str
    when_away: WhenAway = "wait"
    allow_plaintext: bool = False

    def __post_init__(self) -> None:
        if self.when_away not in get_args(WhenAway):
            raise ValueError(f"when_away must be wait or drop, got '{self.when_away}'")
        parts = self._parts
        given = _parameters(parts)
        if parts.scheme not in SCHEMES or parts.fragment or not self._hosts:
            raise ValueError("url must be postgresql://USER@HOST:PORT/DATABASE")
        if ":" in parts.netloc.rpartition("@")[0] or "password" in given:
            raise ValueError(
                "url must have no password: set PGPASSWORD in the environment, or give passfile=FILE"
            )
        for name in REFUSED:
            if name in given:
                raise ValueError(f"url must not have {name}: give host and port before the database")
        for host in self._hosts:
            is_here = host.startswith("/") or is_loopback(host)
            if not (is_here or self.allow_plaintext or given.get("sslmode") in VERIFIED):
                raise PlaintextError(
                    f"url names another machine ({host}), whose certificate is not verified: add "
                    "sslmode=verify-full, or allow_plaintext: true if the network between is trusted"
                )

    @property
    def shown(self) -> str:
        """Its hosts, ports and name, for messages."""
        return f"{self._parts.netloc.rpartition('@')[2] or ','.join(self._hosts)}{self._parts.path}"

    @property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url)

    @property
    def _hosts(self) -> list[str]:
        """Hosts of the address and of the parameter `host`; one that begins with / is a folder of sockets."""
        named = self._parts.netloc.rpartition("@")[2].split(",") + _parameters(self._parts).get(
            "host", ""
        ).split(",")
        return [_without_port(unquote(each)) for each in named if each]


def _parameters(parts: SplitResult) -> dict[str, str]:
    return dict(parse_qsl(parts.query, keep_blank_values=True))


def _without_port(address: str) -> str:
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address if address.startswith("/") else address.partition(":")[0]
