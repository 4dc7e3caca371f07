"""One edge: listens, answers, and stops in good order.

It keeps nothing on disk and shares nothing with other edges, so any number may run, and may be killed at any
moment: a device that got no answer sends the same upload again.
"""

import asyncio
import errno
import os
import resource
import ssl
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from deniable.cluster.cluster import Cluster
from deniable.cluster.connection.outage import Outage
from deniable.config.settings.allowance import Allowance
from deniable.edge.collection_list import collection_list
from deniable.edge.intake.acceptance import group_terms
from deniable.edge.intake.rate_limits import RateLimits
from deniable.edge.metrics.counters import EdgeCounters
from deniable.edge.sending.kafka_session import KafkaSession
from deniable.edge.sending.upload_writer import UploadWriter
from deniable.edge.signing_key import SigningKey
from deniable.edge.tls import TlsFiles, TlsFilesError
from deniable.edge.web.answers import NO_STORE, Answer, json_answer
from deniable.edge.web.connection import HttpConnection
from deniable.edge.web.origins import AllowedOrigins
from deniable.edge.web.requests import EdgePages, RequestHandler
from deniable.edge.web.service import HttpService
from deniable.estimators.errors import DeniableError
from deniable.protocol.wire import GROUP_REASONS

STOP_SECONDS = 5.0
BACKLOG = 4096
HANDSHAKE_SECONDS = 10.0
FILES_SECONDS = 10.0  # between two looks at the certificate
RESERVED_FILES = 128  # for Kafka, logs and handshakes
MOST_CONNECTIONS = 16_384
TRY_EXAMPLES = 6

_log = structlog.get_logger()


class EdgeListenError(DeniableError, RuntimeError):
    """Cannot listen on an address."""


@dataclass(frozen=True)
class EdgeSettings:
    """What an edge works with.

    Parameters
    ----------
    cluster, topic, partitions : where uploads are written.
    revision, allowances : of the collection file.
    delivery_seconds : by which a window takes uploads for less time than its grace.
    key : signs the list of collections.
    allow_origins, uploads_per_minute, trusted_proxies, max_age_seconds : as in the section `edge`.
    certificate_file, key_file : both, for TLS; or neither.
    try_files : content type and file by path of the try page; empty without the page.
    """

    cluster: Cluster
    topic: str
    partitions: int
    revision: int
    allowances: tuple[Allowance, ...]
    delivery_seconds: int
    key: SigningKey
    allow_origins: tuple[str, ...] = ()
    uploads_per_minute: int = 600
    trusted_proxies: int = 0
    max_age_seconds: int = 300
    certificate_file: Path | None = None
    key_file: Path | None = None
    try_files: dict[bytes, tuple[str, Path]] = field(default_factory=dict)


class Edge:
    """A server that listens from `open` to `stop`.

    Parameters
    ----------
    settings : what it works with.

    Raises
    ------
    TlsFilesError if certificate or key cannot be used.
    """

    def __init__(self, settings: EdgeSettings) -> None:
        self.settings = settings
        self.counters = EdgeCounters(GROUP_REASONS)
        self._registry = CollectorRegistry()
        self._registry.register(self.counters)
        self._tls: TlsFiles | None = None
        if settings.certificate_file is not None and settings.key_file is not None:
            self._tls = TlsFiles(settings.certificate_file, settings.key_file)
        self._server: asyncio.Server | None = None
        self._is_stopping = False
        self.service: HttpService
        self.writer: UploadWriter

    async def open(self, host: str, port: int) -> int:
        """Listen on an address, port 0 for a free one; return the port.

        Raises
        ------
        EdgeListenError if the address cannot be used.
        """
        settings = self.settings
        self.writer = self._new_writer()
        self.service = HttpService(self._handler(), self.writer, self.counters, most_connections())
        loop = asyncio.get_running_loop()
        context = self._tls.context if self._tls else None
        with _listen_errors(host, port):
            self._server = await loop.create_server(
                partial(HttpConnection, self.service),
                host,
                port,
                backlog=BACKLOG,
                ssl=context,
                ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            )
        self.writer.start()  # no sooner: with a wrong address, Kafka is no matter
        self.writer.tasks.start(self.service.watch(), "the watch over connections")
        if self._tls is not None:
            self.writer.tasks.start(self._watch_files(self._tls), "the watch over the certificate")
        _log.info("edge listens", most_connections=most_connections(), topic=settings.topic)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Stop listening, answer what is in flight, and disconnect."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        await self.service.stop(seconds)
        await self.writer.close(seconds)

    async def serve(self, stopped: asyncio.Event) -> None:
        """Return once `stopped` is set.

        Raises
        ------
        DefectError if a task that the edge cannot do without has ended.
        """
        defect = self.writer.tasks.defect
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait((stopping, defect), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if defect.done():
            raise defect.result()

    def reasons_not_ready(self) -> list[str]:
        """Return why uploads are not taken; empty if they are."""
        return ["it is stopping"] if self._is_stopping else self.writer.reasons()

    def _new_writer(self) -> UploadWriter:
        settings = self.settings
        outage = Outage(settings.cluster, "uploads are refused", (settings.topic,))
        return UploadWriter(self._open_session, settings.partitions, self.counters, outage)

    async def _open_session(self) -> KafkaSession:
        settings = self.settings
        return await KafkaSession.open(settings.cluster, settings.topic, settings.partitions)

    def _handler(self) -> RequestHandler:
        settings = self.settings
        listed = collection_list(
            settings.revision, settings.allowances, settings.delivery_seconds, settings.key
        )
        collections = [each.collection for each in settings.allowances]
        return RequestHandler(
            group_terms(collections, settings.delivery_seconds),
            listed,
            settings.max_age_seconds,
            AllowedOrigins(settings.allow_origins),
            RateLimits(settings.uploads_per_minute),
            settings.trusted_proxies,
            EdgePages(self._probes(), self._try_page()),
        )

    def _probes(self) -> dict[bytes, Callable[[], Answer]]:
        return {b"/healthz": _healthy, b"/readyz": self._ready, b"/metrics": self._metrics}

    def _ready(self) -> Answer:
        reasons = self.reasons_not_ready()
        return json_answer({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    def _metrics(self) -> Answer:
        headers = ((b"Content-Type", CONTENT_TYPE_LATEST.encode()), NO_STORE)
        return Answer(200, generate_latest(self._registry), headers)

    def _try_page(self) -> dict[bytes, Callable[[], Answer]]:
        files = self.settings.try_files
        pages = {path: partial(try_answer, *found) for path, found in files.items()}
        examples = partial(json_answer, try_examples(self.settings.allowances))
        return {**pages, b"/try/examples.json": examples} if files else {}

    async def _watch_files(self, files: TlsFiles) -> None:
        while True:
            await asyncio.sleep(FILES_SECONDS)
            try:
                files.refresh()
            except TlsFilesError as error:
                _log.warning("the former certificate stays in use", error=str(error))


#: The try page loads nothing from elsewhere, and no other page may frame it.
TRY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def try_answer(content_type: str, file: Path) -> Answer:
    """Return a file of the try page."""
    headers = (
        (b"Content-Type", content_type.encode()),
        NO_STORE,
        (b"Content-Security-Policy", TRY_POLICY.encode()),
        (b"X-Content-Type-Options", b"nosniff"),
        (b"Referrer-Policy", b"no-referrer"),
    )
    return Answer(200, file.read_bytes(), headers)


def try_examples(allowances: Iterable[Allowance]) -> dict[str, tuple[str, ...]]:
    """Return up to TRY_EXAMPLES candidates of each collection that has any, by name, spread over its list."""
    found = {}
    for collection in (each.collection for each in allowances if not each.collection.canary):
        candidates = collection.candidates
        if candidates:
            number = min(TRY_EXAMPLES, len(candidates))
            found[collection.name] = tuple(candidates[i * len(candidates) // number] for i in range(number))
    return found


def _healthy() -> Answer:
    return json_answer({"healthy": True})


def most_connections() -> int:
    """Return how many connections fit this process's limit of open files."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(MOST_CONNECTIONS, soft - RESERVED_FILES))


@contextmanager
def _listen_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError:
        raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EdgeListenError(f"port {port} of {host} is in use; give another --listen") from None
        reason = os.strerror(error.errno or errno.EADDRNOTAVAIL)
        raise EdgeListenError(
            f"port {port} of {host} cannot be used: {reason}; give another --listen"
        ) from None
