"""One connection of HTTP/1.1: bytes in, requests to the handler, answers out in the order of the requests.

What a client can make this process hold is bounded: a head of 8 KiB, a body of 64 KiB, a chunk of the
socket's, and the answers to MOST_WAITING requests, after which nothing more is read until some are sent.
"""

import asyncio
import time
from collections import deque
from typing import cast

import httptools

from deniable.edge.intake.acceptance import CheckedUpload
from deniable.edge.intake.rate_limits import prefix_of
from deniable.edge.web.answers import Answer, error, render
from deniable.edge.web.requests import HEADERS, REPORTS, TAKEN, Request, refused, written
from deniable.edge.web.service import HttpService

MOST_HEAD_BYTES = 8192
MOST_WAITING = 16
REQUEST_SECONDS = 10.0
IDLE_SECONDS = 75.0
LINGER_SECONDS = 2.0  # after the last answer
UNREAD_SECONDS = 10.0  # within which a client must take its answers
RETRY_SECONDS = 5

#: Headers of which a request is not remembered.
PASSING = frozenset((b"connection", b"expect", b"transfer-encoding"))
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Exchange:
    """A request that waits for its answer, or for those before it to be sent."""

    __slots__ = ("began", "checked", "connection", "deadline", "keeps", "request", "sent", "upload")

    checked: CheckedUpload  # of an upload that is written, as are the next two
    upload: bytes
    deadline: float

    def __init__(self, connection: "HttpConnection", request: Request, keeps: bool) -> None:
        self.connection = connection
        self.request = request
        self.keeps = keeps
        self.began = time.monotonic()
        self.sent = b""  # the answer's bytes

    def done(self, why: str) -> None:
        """Answer an upload: Kafka has it if `why` is empty."""
        self.connection.written(self, why)


class HttpConnection(asyncio.Protocol):
    """A client's connection.

    Parameters
    ----------
    service : what all connections share.
    """

    def __init__(self, service: HttpService) -> None:
        self._service = service
        self._loop = service.loop
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport
        self._peer = b""
        self._request: Request | None = None  # being read
        self._url = b""
        self._head_bytes = 0
        self._is_in_head = False
        self._is_new = False  # whether the request began in the bytes that came last
        self._begun = 0  # requests in the bytes that came last
        self._last: Request
        self._known: Request  # a request with this head and bytes of body
        self._known_head = b""
        self._known_bytes = 0
        self._body: list[bytes] = []
        self._early: Answer | None = None
        self._exchanges: deque[Exchange] = deque()
        self._is_paused = False
        self._is_deaf = False  # what comes is dropped
        self._is_over = False  # nothing more is answered
        self._has_served = False
        self._is_upgrade = False  # the request asks for another protocol, and is the last one
        self._since = 0.0  # of the request being read, or of the last answer
        self._closes_at = 0.0
        self._blocked_at = 0.0

    # --- the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless too many are open."""
        self._transport = cast(asyncio.Transport, transport)
        self._since = self._loop.time()
        peer = transport.get_extra_info("peername")
        self._peer = (prefix_of(peer[0]) if peer else None) or b""
        if not self._service.add(self):
            said = "too many connections are open: try again after the seconds of Retry-After"
            self._end(error(503, said, closes=True, retry_seconds=RETRY_SECONDS))

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it; uploads that wait are written all the same."""
        self._is_deaf = self._is_over = True
        self._exchanges.clear()
        self._service.remove(self)

    def eof_received(self) -> bool:
        """Close once the requests that came are answered; now, if there are none."""
        self._is_deaf = True
        if self._exchanges:
            self._exchanges[-1].keeps = False
        return bool(self._exchanges)

    def pause_writing(self) -> None:
        """Read nothing more from a client that does not take its answers."""
        self._blocked_at = self._loop.time()
        self._pause(True)

    def resume_writing(self) -> None:
        """Continue."""
        self._blocked_at = 0.0
        self._pause(False)

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        if self._is_deaf:
            return
        self._is_new = False
        self._begun = 0
        if self._is_upgrade:
            self._add_to_body(data)
            return
        is_between = self._request is None
        if is_between and self._known_head and data.startswith(self._known_head):
            body = data[len(self._known_head) :]
            if len(body) == self._known_bytes:
                self._repeat(body)
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._is_upgrade = True
            self._add_to_body(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self._end(error(400, "this is not HTTP/1.1: the request cannot be parsed", closes=True))
            return
        if is_between and self._begun == 1 and self._request is None and not self._is_deaf:
            self._remember(data)
        if self._is_in_head:
            # httptools keeps an unfinished header to itself, so its bytes are counted as they come.
            if not self._is_new:
                self._head_bytes += len(data)
            elif is_between and self._begun == 1:
                self._head_bytes = len(data)
            self._check_head()

    def _remember(self, data: bytes) -> None:
        """Keep the head of the only request in these bytes: a client's next one usually has the same.

        Rule: the head of an upload that was not refused, without Connection and Expect, decides the same
        whenever it comes, but for the rate limit. So bytes that begin with it need no parser.
        """
        request = self._last
        is_plain = self._early is None and not PASSING & request.headers.keys()
        head, blank, body = data.partition(b"\r\n\r\n")
        is_exact = len(body) == request.content_length  # clients may send line ends before or after a request
        if is_plain and is_exact and request.method == b"POST" and request.path == REPORTS:
            self._known = request
            self._known_bytes = len(body)
            self._known_head = head + blank

    def _repeat(self, body: bytes) -> None:
        """Take a request with the remembered head."""
        service, request = self._service, self._known
        self._since = self._loop.time()
        exchange = Exchange(self, request, not service.is_stopping)
        self._is_deaf = service.is_stopping
        self._exchanges.append(exchange)
        if len(self._exchanges) > MOST_WAITING:
            self._pause(True)
        self._take(exchange, service.handler.of_repeated(request, body, self._since, time.time()))

    # --- the parser

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._request = Request(b"", b"", {}, self._peer)
        self._since = self._loop.time()
        self._url = b""
        self._head_bytes = 0
        self._is_in_head = self._is_new = True
        self._begun += 1
        self._body = []
        self._early = None

    def on_url(self, url: bytes) -> None:
        """Add to the target."""
        self._url += url
        self._head_bytes += len(url)
        if self._head_bytes > MOST_HEAD_BYTES:
            self._check_head()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep the headers that decide something."""
        self._head_bytes += len(name) + len(value) + 4
        name = name.lower()
        if name in HEADERS and (request := self._request) is not None:
            if name == b"x-forwarded-for" and name in request.headers:
                value = request.headers[name] + b"," + value
            request.headers[name] = value

    def on_headers_complete(self) -> None:
        """Answer what the head decides, so that no body is read for nothing."""
        self._is_in_head = False
        if self._head_bytes > MOST_HEAD_BYTES:
            self._check_head()
        request = self._request
        if request is None or self._is_deaf:
            return
        request.method = self._parser.get_method()
        request.path = self._url if self._url == REPORTS else path_of(self._url)
        self._early = self._service.handler.of_head(request, self._loop.time())
        expects = b"expect" in request.headers and request.headers[b"expect"].lower() == b"100-continue"
        if self._early is None and expects and not self._exchanges:
            self._transport.write(CONTINUE)
        elif self._early is not None and (self._early.closes or expects):
            self._end(self._early)

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body; `of_head` refused one that is too large."""
        if self._early is None and not self._is_deaf:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer the request, unless it asks for another protocol: httptools leaves such a body to us."""
        if (
            self._request is None
            or b"connection" not in self._request.headers
            or not self._parser.should_upgrade()
        ):
            self._complete()

    def _add_to_body(self, data: bytes) -> None:
        """Read the body of a request that asks for another protocol, which is answered like any other."""
        self._body.append(data)
        wanted = max(0, self._request.content_length) if self._request is not None else 0
        if sum(map(len, self._body)) >= wanted:
            self._body = [b"".join(self._body)[:wanted]]
            self._complete()

    def _complete(self) -> None:
        """Answer the request, or queue its upload."""
        request, self._request = self._request, None
        if request is None or self._is_deaf:
            return
        self._has_served = True
        exchange = Exchange(self, request, self._keeps(request))
        self._is_deaf = not exchange.keeps
        self._last = request
        self._exchanges.append(exchange)
        if len(self._exchanges) > MOST_WAITING:
            self._pause(True)
        if self._early is not None:
            self._answer(exchange, self._early)
            return
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body = []
        self._take(exchange, self._service.handler.of_body(request, body, time.time()))

    def _take(self, exchange: Exchange, found: Answer | CheckedUpload) -> None:
        """Send an answer, or queue an upload that has a good group."""
        if isinstance(found, Answer):
            self._answer(exchange, found)
            return
        if found.rejected:
            self._service.count_rejected(found)
        if not found.taken:
            self._answer(exchange, refused(found))
            return
        exchange.checked = found
        exchange.upload = found.taken
        if why := self._service.writer.put(found.upload_id, exchange):
            self._answer(exchange, unavailable(why))

    def _keeps(self, request: Request) -> bool:
        """Whether the connection stays open; HTTP/1.0 and other protocols would have to ask for it."""
        parser = self._parser
        if self._service.is_stopping or not parser.should_keep_alive():
            return False
        if b"connection" not in request.headers:
            return True
        return parser.get_http_version() == "1.1" and not parser.should_upgrade()

    # --- answers

    def written(self, exchange: Exchange, why: str) -> None:
        """Answer an upload: Kafka has it if `why` is empty."""
        if why:
            self._answer(exchange, unavailable(why))
            return
        checked = exchange.checked
        self._service.counters.taken(checked.groups, checked.reports, len(checked.taken))
        self._answer(exchange, written(checked) if checked.rejected else TAKEN)

    def _answer(self, exchange: Exchange, answer: Answer) -> None:
        service, request = self._service, exchange.request
        counters = service.counters
        if request.path == REPORTS:
            counters.requests["reports", answer.status] += 1
            counters.answered(time.monotonic() - exchange.began)
        else:
            counters.requests[service.handler.kind_of(request.path), answer.status] += 1
        if self._is_over:
            return  # the client is gone
        if service.is_stopping and exchange is self._exchanges[-1]:
            exchange.keeps = False
        origin = request.headers.get(b"origin", b"")
        if answer is TAKEN and exchange.keeps:
            exchange.sent = service.taken(origin)
        else:
            lines, with_body = service.shared_lines(origin), request.method != b"HEAD"
            exchange.sent = render(answer, lines, keeps=exchange.keeps, with_body=with_body)
        self._send()

    def _send(self) -> None:
        """Send the answers that none before them waits for."""
        exchanges = self._exchanges
        while exchanges and exchanges[0].sent:
            done = exchanges.popleft()
            self._transport.write(done.sent)
            if not done.keeps:
                self._linger()
                return
        if self._request is None:
            self._since = self._loop.time()
        if self._is_paused and not self._blocked_at:
            self._pause(False)

    def _end(self, answer: Answer) -> None:
        """Give the last answer of this connection, after those before it."""
        if self._is_deaf:
            return
        self._is_deaf = True
        exchange = Exchange(self, self._request or Request(b"", b""), False)
        self._request = None
        self._body = []
        self._exchanges.append(exchange)
        self._answer(exchange, answer)

    def _linger(self) -> None:
        """Drop what comes for a moment: a close with unread bytes would destroy the answer on its way."""
        self._is_deaf = self._is_over = True
        self._exchanges.clear()
        self._pause(False)
        self._closes_at = self._loop.time() + LINGER_SECONDS
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _check_head(self) -> None:
        if self._head_bytes > MOST_HEAD_BYTES:
            self._end(error(431, f"a head must have at most {MOST_HEAD_BYTES} bytes", closes=True))

    def _pause(self, is_wanted: bool) -> None:
        if is_wanted and not self._is_paused:
            self._transport.pause_reading()
        elif self._is_paused and not is_wanted and len(self._exchanges) <= MOST_WAITING // 2:
            self._transport.resume_reading()
        else:
            return
        self._is_paused = is_wanted

    # --- time

    def check(self, now: float) -> None:
        """End what takes too long. Called about every second.

        Parameters
        ----------
        now : seconds of the loop's clock.
        """
        if self._closes_at:
            if now >= self._closes_at:
                self._transport.abort()
        elif self._blocked_at:
            if now - self._blocked_at > UNREAD_SECONDS:
                self._transport.abort()
        elif self._request is not None:
            if now - self._since > REQUEST_SECONDS and not self._is_paused:
                self._end(
                    error(408, f"a request must be complete within {REQUEST_SECONDS:.0f} s", closes=True)
                )
        elif not self._exchanges:
            allowed = IDLE_SECONDS if self._has_served else REQUEST_SECONDS
            if now - self._since > allowed:
                self._transport.close()

    def stop(self) -> None:
        """Close it if nothing is asked; else after the next answers."""
        if self._request is None and not self._exchanges and not self._closes_at:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        self._transport.abort()


def path_of(target: bytes) -> bytes:
    """Return the path of a request's target, which may be an absolute URL, without its query."""
    if not target.startswith(b"/") and b"://" in target:
        target = b"/" + target.partition(b"://")[2].partition(b"/")[2]
    return target.partition(b"?")[0]


def unavailable(why: str) -> Answer:
    """Return the answer to an upload that cannot be written now."""
    said = f"{why}; send the same upload again after the seconds of Retry-After"
    return error(503, said, retry_seconds=RETRY_SECONDS)
