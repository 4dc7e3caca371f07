"""Where brokers are: host:port, and which hosts are this machine."""

import ipaddress
import re

_LABEL = r"[A-Za-z0-9_-]{1,63}"
_ADDRESS = re.compile(rf"(?:\[([0-9a-fA-F:.]+)\]|({_LABEL}(?:\.{_LABEL})*)):([0-9]{{1,5}})")


def split_addresses(bootstrap_servers: str) -> list[tuple[str, int]]:
    """Host, without brackets, and port of each broker.

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
        raise ValueError(f"bootstrap_servers must be HOST:PORT with a port in [1, 65535], got '{shown}'")
    return match[1] or match[2], int(match[3])


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, as its name or address alone tells."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
