"""Check that Kafka can be reached and accepts us; its clients retry for half a minute and name no cause."""

import asyncio
import os
from contextlib import ExitStack
from dataclasses import dataclass

from deniable.cluster.cluster import Cluster, is_loopback
from deniable.cluster.connection.causes import Cause, cause_of
from deniable.cluster.connection.handshakes import Address, greet, log_in
from deniable.cluster.credential_files import SecurityError
from deniable.estimators.errors import DeniableError

PROBE_SECONDS = 5.0
LOOP_FILES = 8


class UnreachableError(DeniableError, RuntimeError):
    """None of the brokers' addresses can be used."""


class BrokerAwayError(UnreachableError):
    """A broker accepted us, but another one that is needed, or that it still names, does not answer."""


class RefusedError(UnreachableError):
    """A broker answers but refuses us, or we do not trust it: waiting does not help."""


@dataclass(frozen=True)
class Tried:
    """The outcome of connecting to one broker.

    Parameters
    ----------
    address : HOST:PORT.
    cause : why it cannot be used; None if it can.
    certificate : the broker's, DER; None without TLS, or if connecting failed earlier.
    brokers : advertised addresses of the cluster's brokers.
    """

    address: str
    cause: Cause | None
    certificate: bytes | None = None
    brokers: tuple[Address, ...] = ()


def probe(cluster: Cluster, seconds: float = PROBE_SECONDS) -> tuple[Address, ...]:
    """Connect to all brokers at once, like Kafka's clients, until one accepts us; for at most `seconds`.

    Return the addresses of all brokers that it names. Must not be called within an event loop.

    Raises
    ------
    UnreachableError with the reason for every address; RefusedError if a broker answered; SecurityError if a
    file of `kafka.security` cannot be used; OSError if this process may open no more files.
    """
    if cluster.security is not None:
        cluster.security.check()
    require_spare_files()
    tried = asyncio.run(_tried(cluster, seconds))
    causes = {each.address: each.cause for each in tried if each.cause is not None}
    if len(causes) < len(tried):
        return tried[-1].brokers
    reasons = "; ".join(f"{address}: {cause.what}" for address, cause in causes.items())
    if any(cause.is_answer for cause in causes.values()):
        remedies = dict.fromkeys(cause.remedy for cause in causes.values() if cause.is_answer)
        raise RefusedError(f"Kafka cannot be used ({reasons}); {'; '.join(remedies)}")
    if remedies := dict.fromkeys(cause.remedy for cause in causes.values() if cause.is_of_token):
        raise UnreachableError(f"Kafka cannot be used ({reasons}); {'; '.join(remedies)}")
    if cluster.security is None and all(is_loopback(host) for host, _ in cluster.addresses()):
        remedy = (
            "start one with deniable dev, which keeps its data, or with deniable broker; or name an existing "
            "one in kafka.bootstrap_servers, or with --bootstrap-servers HOST:PORT"
        )
    else:
        remedy = (
            "check that it runs and that kafka.bootstrap_servers, or --bootstrap-servers where that is "
            "given, names it; deniable doctor says more"
        )
    raise UnreachableError(f"no Kafka broker answers ({reasons}); {remedy}")


def require_spare_files() -> None:
    """Raise OSError if this process may open no more files: a loop that lacks one leaves a traceback."""
    with ExitStack() as files:
        for _ in range(LOOP_FILES):
            files.enter_context(open(os.devnull))


async def _tried(cluster: Cluster, seconds: float) -> list[Tried]:
    """Try the brokers of the configuration; return the outcomes up to the first that can be used."""
    addresses = cluster.addresses()
    tasks = [asyncio.create_task(try_broker(cluster, *each, seconds)) for each in addresses]
    tried = []
    try:
        for done in asyncio.as_completed(tasks):
            tried.append(await done)
            if tried[-1].cause is None:
                return tried
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [task.result() for task in tasks]  # in the order of the configuration


async def try_broker(cluster: Cluster, host: str, port: int, seconds: float) -> Tried:
    """Connect to one broker and log in, for at most `seconds`."""
    address = address_of(host, port)
    certificate = None
    try:
        async with asyncio.timeout(seconds):
            certificate = await greet(host, port, cluster.security)
            brokers = await log_in(cluster, host, port)
    except SecurityError:
        raise
    except Exception as error:  # noqa: BLE001 - clients raise anything; each becomes a cause
        return Tried(address, cause_of(error, seconds, cluster.security), certificate)
    return Tried(address, None, certificate, tuple(brokers))


def address_of(host: str, port: int) -> str:
    """HOST:PORT, IPv6 in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
