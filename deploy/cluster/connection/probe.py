"""Whether a Kafka is there and lets us in. Its clients go on trying for half a minute and name no cause."""

import asyncio
from dataclasses import dataclass

from deploy.cluster.connection.causes import Cause, cause_of
from deploy.cluster.connection.handshakes import Address, greet, log_in
from estimators.errors import DeniableError
from producers.transport.cluster import Cluster, is_loopback
from producers.transport.credential_files import SecurityError

PROBE_SECONDS = 5.0


class UnreachableError(DeniableError, RuntimeError):
    """No Kafka that lets us in answers at any of the brokers' addresses."""


class RefusedError(UnreachableError):
    """A broker answers, and does not let us in, or we do not trust it: waiting does not help."""


@dataclass(frozen=True)
class Tried:
    """What came of connecting to one broker.

    Parameters
    ----------
    address : HOST:PORT.
    cause : why it cannot be used; None if it can.
    certificate : the broker's, DER; None without TLS, or when we did not come so far.
    brokers : advertised addresses of all brokers that it knows.
    """

    address: str
    cause: Cause | None
    certificate: bytes | None = None
    brokers: tuple[Address, ...] = ()


def probe(cluster: Cluster) -> None:
    """Connect to all brokers at once, as their clients would, until one lets us in, within 5 s.

    Not to be called in an event loop.

    Raises
    ------
    UnreachableError with the reason of every address; RefusedError if one of the brokers has answered;
    SecurityError if a file of `kafka.security` is of no use.
    """
    if cluster.security is not None:
        cluster.security.check()
    causes = asyncio.run(_causes_of(cluster))
    if causes is None:
        return
    reasons = "; ".join(f"{address}: {cause.what}" for address, cause in causes.items())
    if any(cause.is_answer for cause in causes.values()):
        remedies = dict.fromkeys(cause.remedy for cause in causes.values() if cause.is_answer)
        raise RefusedError(f"Kafka cannot be used ({reasons}); {'; '.join(remedies)}")
    if cluster.security is None and all(is_loopback(host) for host, _ in cluster.addresses()):
        remedy = "start one with deniable broker, or name an existing one with --bootstrap-servers HOST:PORT"
    else:
        remedy = (
            "see whether it is up, and whether kafka.bootstrap_servers names it; deniable doctor tells more"
        )
    raise UnreachableError(f"no Kafka broker answers ({reasons}); {remedy}")


async def _causes_of(cluster: Cluster) -> dict[str, Cause] | None:
    """Why each broker cannot be used, by address; None as soon as one can."""
    addresses = cluster.addresses()
    tasks = [asyncio.create_task(try_broker(cluster, *each, PROBE_SECONDS)) for each in addresses]
    try:
        for done in asyncio.as_completed(tasks):
            if (await done).cause is None:
                return None
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    tried = [task.result() for task in tasks]
    return {each.address: each.cause for each in tried if each.cause is not None}


async def try_broker(cluster: Cluster, host: str, port: int, seconds: float) -> Tried:
    """Connect to one broker and log in, within so many seconds."""
    address = address_of(host, port)
    certificate = None
    try:
        async with asyncio.timeout(seconds):
            certificate = await greet(host, port, cluster.security)
            brokers = await log_in(cluster, host, port)
    except SecurityError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise what they like; each becomes a cause
        return Tried(address, cause_of(error, seconds, cluster.security), certificate)
    return Tried(address, None, certificate, tuple(brokers))


def address_of(host: str, port: int) -> str:
    """HOST:PORT, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
