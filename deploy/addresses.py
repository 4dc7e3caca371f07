"""Where Kafka is: host:port, and which hosts are this machine."""

import ipaddress
import re
import socket
import struct

PROBE_SECONDS = 5.0
LABEL = r"[A-Za-z0-9_-]{1,63}"
ADDRESS = re.compile(rf"(?:\[([0-9a-fA-F:.]+)\]|({LABEL}(?:\.{LABEL})*)):([0-9]{{1,5}})")

# ApiVersions, version 0, from a client without a name: size, key 18, version, correlation id, no client id.
QUESTION = struct.pack(">ihhih", 10, 18, 0, 0x64656E79, -1)


def check_addresses(bootstrap_servers: str, *, allow_plaintext: bool) -> None:
    """Check a list of brokers, and that what is sent in clear does not leave this machine unasked.

    Parameters
    ----------
    bootstrap_servers : HOST:PORT, or several with commas.
    allow_plaintext : True when connections to other machines may go without TLS.

    Raises
    ------
    ValueError that names the address.
    """
    for address in bootstrap_servers.split(","):
        host, port = _split(address)
        if not 1 <= port <= 65535:
            raise ValueError(
                f"kafka.bootstrap_servers must be HOST:PORT with a port in [1, 65535], got '{address}'"
            )
        if not (allow_plaintext or _is_loopback(host)):
            raise ValueError(
                f"kafka.bootstrap_servers is another machine ({host}) and the connection is not encrypted; "
                "set kafka.allow_plaintext: true if the network between is trusted"
            )


def _split(address: str) -> tuple[str, int]:
    """Host, without brackets, and port; port 0 when it is no address."""
    match = ADDRESS.fullmatch(address)
    return (match[1] or match[2], int(match[3])) if match else ("", 0)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class UnreachableError(RuntimeError):
    """No Kafka answers at any of the brokers' addresses."""


def probe(bootstrap_servers: str) -> None:
    """Ask each broker which protocol versions it knows until one answers.

    Kafka's clients alone go on trying for half a minute and name no cause.

    Parameters
    ----------
    bootstrap_servers : as `check_addresses` took it.

    Raises
    ------
    UnreachableError with the reason of every address.
    """
    reasons = []
    for address in bootstrap_servers.split(","):
        try:
            _ask(*_split(address))
        except TimeoutError:
            reasons.append(f"{address}: no answer within {PROBE_SECONDS:.0f} s")
        except OSError as error:
            reasons.append(f"{address}: {error.strerror or error}")
        else:
            return
    raise UnreachableError(
        f"no Kafka broker answers ({'; '.join(reasons)}); start one with deniable broker, "
        "or name an existing one with --bootstrap-servers HOST:PORT"
    )


def _ask(host: str, port: int) -> None:
    """OSError when what listens there does not answer as Kafka does: a size, then our correlation id."""
    with (
        socket.create_connection((host, port), timeout=PROBE_SECONDS) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(QUESTION)
        answer = answers.read(8)
    if answer[4:] != QUESTION[8:12]:
        raise ConnectionError("what listens there is no Kafka broker without TLS")
