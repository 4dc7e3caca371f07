"""Requests to an edge: what anybody who reaches it sends, heads and bodies.

The first byte of an input says what the others are: 0 to 15, raw bytes of a connection; others, the body of
an upload. A checksum would keep nearly all mutations of a body out, so most get the right one. The raw bytes
come in two pieces.
"""

import asyncio
import json
from collections import Counter

from crc32c import crc32c

from deniable.edge.collection_list import CollectionList
from deniable.edge.intake.acceptance import CheckedUpload, check_upload
from deniable.edge.intake.rate_limits import RateLimits
from deniable.edge.metrics.counters import EdgeCounters
from deniable.edge.web.connection import HttpConnection
from deniable.edge.web.origins import AllowedOrigins
from deniable.edge.web.requests import EdgePages, RequestHandler
from deniable.edge.web.service import HttpService
from deniable.protocol.uploads.frame import decode_frame, encode_frame
from deniable.protocol.uploads.upload import UploadError, decode_upload, encode_upload
from deniable.protocol.wire import GROUP_REASONS as REASONS
from tests.support.edge.uploads import BITS, LARGE, SMALL, TERMS, group, post, upload
from tests.support.paths import VECTORS

NOW = 1_767_225_660.0
START = 1_767_225_600
VECTOR = json.loads((VECTORS / "uploads.json").read_text())
BODIES = [
    upload(group(start=START)),
    upload(group(LARGE, bytes(6), START), group(BITS, bytes(16), START, cohort=3), upload_id=bytes(16)),
    upload(group(SMALL, b"\x03", START), group(start=START), group(start=START, fingerprint=1)),
    upload(group(start=START), group(start=START - 7 * 86_400)),
    *(bytes.fromhex(each["upload"]) for each in VECTOR["good"] if isinstance(each["upload"], str)),
]
HEADERS = ["Origin: https://shop.example", "X-Forwarded-For: 192.0.2.1, [2001:db8::1]:80"]
REQUESTS = [
    post(BODIES[0]),
    post(BODIES[0]) * 3,
    post(BODIES[1], HEADERS, content_type="text/plain;charset=UTF-8"),
    post(BODIES[0], ["Expect: 100-continue"]),
    post(BODIES[0], ["Connection: Upgrade", "Upgrade: h2c"]),
    b'GET /v1/collections HTTP/1.1\r\nIf-None-Match: W/"abc"\r\n\r\n',
    b"OPTIONS /v1/reports HTTP/1.1\r\nOrigin: https://shop.example\r\n\r\n",
    b"POST http://a/v1/reports?x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HEAD /healthz HTTP/1.1\r\nConnection: close\r\n\r\n",
]
SEEDS = [*(bytes([20]) + each for each in BODIES), *(bytes([0]) + each for each in REQUESTS)]
STATUSES = {100, 200, 204, 304, 400, 403, 404, 405, 408, 409, 411, 413, 415, 431, 503}
outcomes: Counter[str] = Counter()


def mutate(mutated: bytes, seed: int) -> bytes:
    """Give most bodies the right checksum."""
    if len(mutated) > 30 and mutated[0] > 15 and seed % 8:
        body = mutated[1:-4]
        return mutated[:1] + body + crc32c(body).to_bytes(4, "little")
    return mutated


class FuzzedTransport(asyncio.Transport):
    """Remembers what is written."""

    def __init__(self):
        super().__init__()
        self.sent = b""

    def write(self, data):
        self.sent += data

    def pause_reading(self):
        """Do nothing."""

    def resume_reading(self):
        """Do nothing."""

    def can_write_eof(self):
        return False

    def abort(self):
        """Do nothing."""

    def close(self):
        """Do nothing."""


class TakingWriter:
    """Has every upload at once."""

    def put(self, upload_id, waiting):
        assert check_upload(waiting.upload, TERMS, NOW).upload_id == upload_id
        waiting.done("")
        return ""


async def _service():
    listed = CollectionList(b"{}", '"abc"')
    origins = AllowedOrigins(("https://shop.example",))
    handler = RequestHandler(TERMS, listed, 300, origins, RateLimits(0), 1, EdgePages())
    handler.of_body = _at_now(handler.of_body)
    return HttpService(handler, TakingWriter(), EdgeCounters(REASONS), 10)


def _at_now(of_body):
    return lambda request, body, _clock: of_body(request, body, NOW)


SERVICE = asyncio.run(_service())


def check(data: bytes) -> None:
    """Raise UploadError, or take what encodes to the same bytes; a connection answers in HTTP."""
    if data[:1] > b"\x0f":
        _check_body(data[1:])
    elif data:
        _check_connection(data[1:], data[0])


def _check_body(body: bytes) -> None:
    try:
        checked = check_upload(body, TERMS, NOW)
    except UploadError as error:
        outcomes[error.reason] += 1
        return
    assert encode_upload(decode_upload(body)) == body
    groups = decode_upload(body).groups
    assert checked.groups + len(checked.rejected) == len(groups)
    outcomes.update(reason for _, reason in checked.rejected)
    if checked.taken:
        outcomes["taken"] += 1
        again = check_upload(checked.taken, TERMS, NOW)
        assert again == CheckedUpload(checked.upload_id, checked.taken, checked.groups, checked.reports, ())
        assert decode_frame(encode_frame([checked.taken])) == [checked.taken]


def _check_connection(data: bytes, cut: int) -> None:
    transport = FuzzedTransport()
    connection = HttpConnection(SERVICE)
    connection.connection_made(transport)
    middle = len(data) * cut // 16
    connection.data_received(data[:middle])
    connection.data_received(data[middle:])
    connection.check(SERVICE.loop.time() + 100)
    connection.connection_lost(None)
    sent = transport.sent
    if sent:
        assert sent.startswith(b"HTTP/1.1 ")
        status = int(sent[9:12])
        assert status in STATUSES
        outcomes[str(status)] += 1
