"""The stages of a connection to one broker; each raises what went wrong in it.

Rule: nothing is retried; the caller limits the time, and `causes` explains the error.
"""

import asyncio
import logging
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.metadata import MetadataRequest

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.causes import LoginWanted, NotKafka, PlaintextPort, TlsPort
from deniable.cluster.logins.mechanisms import TlsLogin
from deniable.cluster.logins.of_aiokafka import RenewedConnection
from deniable.cluster.security import Security

# ApiVersions request, version 0: size, key 18, version, correlation id, no client id.
CORRELATION_ID = b"deny"
QUESTION = struct.pack(">ihh4sh", 10, 18, 0, CORRELATION_ID, -1)
TLS_ALERT = b"\x15\x03"
CLOSE_SECONDS = 0.2  # for the shutdown of TLS; a connection that never opened does not report its end
ANSWER_BYTES = 8  # size, then our correlation id

Address = tuple[str, int]


class Connected(NamedTuple):
    """The streams of one connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Connection(RenewedConnection):
    """A connection that closes at once: TLS would wait for the broker to close it, too."""

    def close(self, *arguments: Any, **keywords: Any) -> "asyncio.Future[None]":
        writer = self._writer
        closed: asyncio.Future[None] = super().close(*arguments, **keywords)
        if writer is not None:
            writer.transport.abort()
        return closed


async def resolve(host: str, port: int) -> list[str]:
    """Resolve a host to IP addresses; gaierror.

    Uses a daemon thread, since event loops and Python wait at their end for the threads of asyncio's pool.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[str]] = loop.create_future()

    def answer(addresses: list[str], error: OSError | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    def ask() -> None:
        addresses: list[str] = []
        failed: OSError | None = None
        try:
            infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
        except OSError as error:
            failed = error
        with suppress(RuntimeError):  # the loop is closed, nobody waits any more
            loop.call_soon_threadsafe(answer, addresses, failed)

    threading.Thread(target=ask, daemon=True).start()
    return await found


async def dial(host: str, port: int) -> None:
    """Resolve a name and connect by TCP; OSError."""
    await _close(await _open(host, port, None))


async def greet(host: str, port: int, security: Security | None) -> bytes | None:
    """Connect, by TLS if configured, and ask for API versions, which needs no permission.

    With TLS 1.3 a broker that refuses our certificate says so only after the first request.

    Returns
    -------
    The broker's certificate, DER; None without TLS.

    Raises
    ------
    OSError, ssl.SSLError, SecurityError; TlsPort, PlaintextPort or NotKafka if the protocol differs.
    """
    context = None if security is None else security.new_context()
    try:
        return await _ask(host, port, context)
    except (ssl.SSLCertVerificationError, TlsPort):
        raise
    except ssl.SSLError as error:
        if "_ALERT_" in (error.reason or ""):  # so the broker uses TLS
            raise
        if await _speaks(host, port, None):
            raise PlaintextPort from error
        raise
    except (NotKafka, ConnectionResetError, BrokenPipeError):
        unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        if await _speaks(host, port, unverified if context is None else None):
            raise (TlsPort if context is None else PlaintextPort) from None
        raise


async def log_in(cluster: Cluster, host: str, port: int) -> list[Address]:
    """Connect like Kafka's clients, SASL included, and ask for the cluster's brokers.

    Returns
    -------
    The advertised address of each broker.

    Raises
    ------
    OSError, KafkaError; LoginWanted if the broker accepts us without a login and then disconnects.
    """
    settings: dict[str, Any] = cluster.client_settings()
    del settings["bootstrap_servers"]
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    is_let_in = False
    with _quiet("aiokafka.conn"):
        connection = _Connection(host, port, client_id="deniable", **settings)
        try:
            await connection.connect()
            is_let_in = True
            answer = await connection.send(MetadataRequest([]))
        except (KafkaConnectionError, ConnectionError):
            if is_let_in and (cluster.security is None or isinstance(cluster.security.login, TlsLogin)):
                raise LoginWanted from None
            raise
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await connection.close()
    return [(str(broker[1]), int(broker[2])) for broker in answer.brokers]


async def _open(host: str, port: int, context: ssl.SSLContext | None) -> Connected:
    """Connect to the first of the host's addresses that accepts."""
    failed: OSError | None = None
    for address in await resolve(host, port):
        try:
            name = None if context is None else host
            return Connected(*await asyncio.open_connection(address, port, ssl=context, server_hostname=name))
        except ssl.SSLError:
            raise
        except OSError as error:
            failed = error
    raise failed or OSError(f"{host} has no address")


async def _ask(host: str, port: int, context: ssl.SSLContext | None) -> bytes | None:
    stream = await _open(host, port, context)
    try:
        stream.writer.write(QUESTION)
        await stream.writer.drain()
        try:
            answer = await stream.reader.readexactly(ANSWER_BYTES)
        except asyncio.IncompleteReadError as ended:
            answer = ended.partial
        if context is None and answer.startswith(TLS_ALERT):
            raise TlsPort
        if answer[4:] != CORRELATION_ID:
            raise NotKafka
        secured = stream.writer.get_extra_info("ssl_object")
        shown: bytes | None = None if secured is None else secured.getpeercert(binary_form=True)
        return shown
    finally:
        await _close(stream)


async def _speaks(host: str, port: int, context: ssl.SSLContext | None) -> bool:
    """Whether Kafka answers without TLS or, given a context, whether the server does TLS."""
    try:
        if context is None:
            await _ask(host, port, None)
        else:
            await _close(await _open(host, port, context))
    except ssl.SSLError as error:
        return "_ALERT_" in (error.reason or "")
    except (OSError, NotKafka):
        return False
    return True


async def _close(stream: Connected) -> None:
    stream.writer.transport.abort()
    with suppress(OSError):
        await stream.writer.wait_closed()


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Silence a library's log: we report the cause once."""
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
