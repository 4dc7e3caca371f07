"""How many uploads an address prefix may send: a token bucket for each, in memory alone.

Addresses occur nowhere else: no log, metric, record or file has one. A prefix is the first 32 bits of an IPv4
address and the first 56 of an IPv6 one, since one household has as many addresses as it wants behind it.
"""

import socket
from contextlib import suppress

MOST_PREFIXES = 100_000
MINUTE = 60.0
ROUNDING_SECONDS = 1e-4  # of sums of a minute's tokens

_PREFIX_BYTES = 7  # of IPv6
_MAPPED = bytes(10) + b"\xff\xff"


class RateLimits:
    """Tokens of all prefixes; each holds as many as a minute brings, so a burst may take a minute's at once.

    The table keeps the time at which a bucket is full again: a prefix that is absent has a full one. If the
    table is full of others, the ones that came first are forgotten, which only gives them new tokens.

    Parameters
    ----------
    uploads_per_minute : of one prefix, at least 1; 0 for no limit.
    """

    def __init__(self, uploads_per_minute: int) -> None:
        self._seconds = MINUTE / uploads_per_minute if uploads_per_minute else 0.0
        self._full_at: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self._full_at)

    def take(self, prefix: bytes, now: float) -> float:
        """Take a token; return 0, or the seconds until there is one.

        Parameters
        ----------
        prefix : of `prefix_of`.
        now : seconds of a clock that never goes back.
        """
        if not self._seconds:
            return 0.0
        full_at = max(self._full_at.get(prefix, 0.0), now) + self._seconds
        late = full_at - now - MINUTE
        if late > min(ROUNDING_SECONDS, self._seconds / 2):
            return late
        if prefix not in self._full_at and len(self._full_at) >= MOST_PREFIXES:
            self._forget(now)
        self._full_at[prefix] = full_at
        return 0.0

    def _forget(self, now: float) -> None:
        self._full_at = {prefix: full_at for prefix, full_at in self._full_at.items() if full_at > now}
        for prefix in list(self._full_at)[: max(0, len(self._full_at) - MOST_PREFIXES // 2)]:
            del self._full_at[prefix]


def prefix_of(address: str) -> bytes | None:
    """Return the prefix of an IP address, 4 or 7 bytes; None if it is not one."""
    address = address.partition("%")[0]
    with suppress(OSError, ValueError):
        return socket.inet_pton(socket.AF_INET, address)
    with suppress(OSError, ValueError):
        packed = socket.inet_pton(socket.AF_INET6, address)
        return packed[12:] if packed[:12] == _MAPPED else packed[:_PREFIX_BYTES]
    return None


def client_prefix(peer: bytes, forwarded: bytes, trusted_proxies: int) -> bytes:
    """Return the prefix whose tokens a request takes.

    Parameters
    ----------
    peer : prefix of the connection's other end.
    forwarded : the request's X-Forwarded-For, several joined by commas; the nearest proxy wrote the last
        entry.
    trusted_proxies : in front of this server; 0: the header counts nothing, since anyone can write it.
    """
    if not trusted_proxies or not forwarded:
        return peer
    entries = forwarded.rsplit(b",", trusted_proxies)[-trusted_proxies:]
    return prefix_of(_host(entries[0].strip().decode("latin-1"))) or peer


def _host(entry: str) -> str:
    """Return an entry without port and brackets."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
