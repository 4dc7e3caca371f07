"""What is answered to a request: a pure function of its head and body, but for tokens of rate limits.

A request is decided in two steps. `of_head` answers what its head decides, before any byte of its body is
read. `of_body` answers the rest, or returns an upload to write; its answer waits for Kafka.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from deniable.edge.collection_list import CollectionList
from deniable.edge.intake.acceptance import CheckedUpload, GroupTerms, check_upload
from deniable.edge.intake.rate_limits import RateLimits, client_prefix
from deniable.edge.web.answers import NO_STORE, Answer, error, json_answer, to_json
from deniable.edge.web.origins import AllowedOrigins, preflight
from deniable.protocol.uploads.upload import MAX_UPLOAD_BYTES, UploadError

REPORTS = b"/v1/reports"
COLLECTIONS = b"/v1/collections"
UPLOAD_TYPES = (b"application/vnd.deniable.reports", b"text/plain")
MOST_DIGITS = 18  # of a Content-Length

TAKEN = Answer(204)


#: Kinds of paths, as counted in metrics.
PathKind = Literal["reports", "collections", "probes", "try", "other"]


@dataclass(slots=True)
class Request:
    """The head of a request.

    Parameters
    ----------
    method, path : as sent; the path without its query.
    headers : by name in lower case, the ones that are asked for below; the last one of a name counts, and
        those of X-Forwarded-For are joined.
    peer : address prefix of the connection's other end.
    """

    method: bytes
    path: bytes
    headers: dict[bytes, bytes] = field(default_factory=dict)
    peer: bytes = b""

    @property
    def content_length(self) -> int:
        """Bytes of the body; -1 without the header; a number with too many digits is 10**18."""
        text = self.headers.get(b"content-length", b"")
        if not text.isdigit():
            return -1
        return int(text) if len(text) <= MOST_DIGITS else 10**MOST_DIGITS


#: Names of the headers that decide anything.
HEADERS = frozenset(
    (
        *(b"content-length", b"content-type", b"content-encoding", b"transfer-encoding", b"expect"),
        *(b"origin", b"host", b"if-none-match", b"x-forwarded-for", b"connection"),
    )
)


@dataclass(frozen=True)
class EdgePages:
    """Answers to GET beside the list of collections, by path; each is built when it is asked for."""

    probes: Mapping[bytes, Callable[[], Answer]] = field(default_factory=dict)
    try_page: Mapping[bytes, Callable[[], Answer]] = field(default_factory=dict)


class RequestHandler:
    """Decides what is answered.

    Parameters
    ----------
    terms : of the collections, by fingerprint.
    collections : the list that clients fetch.
    max_age_seconds : for which they may keep it.
    origins : that browsers may send from.
    limits : of address prefixes.
    trusted_proxies : whose X-Forwarded-For counts.
    pages : further paths.
    """

    def __init__(
        self,
        terms: Mapping[int, GroupTerms],
        collections: CollectionList,
        max_age_seconds: int,
        origins: AllowedOrigins,
        limits: RateLimits,
        trusted_proxies: int,
        pages: EdgePages,
    ) -> None:
        self._terms = terms
        self._collections = collections
        self._list_headers = (
            (b"Content-Type", b"application/json"),
            (b"ETag", collections.etag.encode()),
            (b"Cache-Control", b"public, max-age=%d" % max_age_seconds),
        )
        self.origins = origins
        self._limits = limits
        self._trusted_proxies = trusted_proxies
        self._pages = pages

    def kind_of(self, path: bytes) -> PathKind:
        """Return the kind of a path."""
        if path == REPORTS:
            return "reports"
        if path == COLLECTIONS:
            return "collections"
        if path in self._pages.probes:
            return "probes"
        return "try" if path in self._pages.try_page else "other"

    def of_head(self, request: Request, now: float) -> Answer | None:
        """Return what the head decides; None if its body must be read.

        Parameters
        ----------
        request : its head.
        now : seconds of a clock that never goes back.
        """
        length = request.content_length
        if b"transfer-encoding" in request.headers:
            said = "the body must have a Content-Length, got Transfer-Encoding: send its length"
            return error(411, said, closes=True)
        if length > MAX_UPLOAD_BYTES:
            said = f"the body must have at most {MAX_UPLOAD_BYTES} bytes: send fewer reports in an upload"
            return error(413, said, closes=True)
        if request.path == REPORTS and request.method == b"POST":
            return self._of_upload(request, length, now)
        return None

    def _of_upload(self, request: Request, length: int, now: float) -> Answer | None:
        headers = request.headers
        if length < 0:
            return error(411, "an upload must have a Content-Length: send it", closes=True)
        origin = headers.get(b"origin")
        if origin and not self.origins.allows(origin, headers.get(b"host", b"")):
            return error(403, "this origin is not in allow_origins of the section edge: add it there")
        if b"content-encoding" in headers:
            return error(415, "an upload must not be compressed: leave out Content-Encoding")
        kind = headers.get(b"content-type", b"")
        if kind not in UPLOAD_TYPES and kind.partition(b";")[0].strip().lower() not in UPLOAD_TYPES:
            allowed = " or ".join(each.decode() for each in UPLOAD_TYPES)
            return error(415, f"Content-Type must be {allowed}")
        return self.of_rate(request, now)

    def of_rate(self, request: Request, now: float) -> Answer | None:
        """Return an answer if its network sends too many uploads; `of_head` includes this.

        Parameters
        ----------
        request : an upload's, of which nothing else decides the answer.
        now : as for `of_head`.
        """
        prefix = request.peer
        if self._trusted_proxies:
            forwarded = request.headers.get(b"x-forwarded-for", b"")
            prefix = client_prefix(prefix, forwarded, self._trusted_proxies)
        if wait := self._limits.take(prefix, now):
            said = "too many uploads from this network: try again after the seconds of Retry-After"
            return error(429, said, retry_seconds=math.ceil(wait))
        return None

    def of_body(self, request: Request, body: bytes, unix_seconds: float) -> Answer | CheckedUpload:
        """Return what a whole request decides, or the upload: to write, if it has a good group.

        Parameters
        ----------
        request : of which `of_head` returned None.
        body : all of it.
        unix_seconds : this machine's clock.
        """
        if request.method == b"POST" and request.path == REPORTS:
            return self._of_upload_body(body, unix_seconds)
        return self._of_path(request)

    def of_repeated(
        self, request: Request, body: bytes, now: float, unix_seconds: float
    ) -> Answer | CheckedUpload:
        """Return what an upload with the head of an earlier one decides, of which nothing was refused.

        Parameters
        ----------
        request : the earlier one.
        body : of the present one.
        now, unix_seconds : as for `of_head` and `of_body`.
        """
        return self.of_rate(request, now) or self._of_upload_body(body, unix_seconds)

    def _of_upload_body(self, body: bytes, unix_seconds: float) -> Answer | CheckedUpload:
        try:
            return check_upload(body, self._terms, unix_seconds)
        except UploadError as bad:
            return error(400, f"the body is not an upload of this version: {bad}")

    def _of_path(self, request: Request) -> Answer:
        path, method = request.path, request.method
        page = self._pages.probes.get(path) or self._pages.try_page.get(path)
        if path == REPORTS:
            methods = b"OPTIONS, POST"
        elif path == COLLECTIONS or page:
            methods = b"GET, HEAD, OPTIONS"
        else:
            return error(404, "nothing is here: uploads go to /v1/reports; /v1/collections says what to ask")
        if method == b"OPTIONS":
            return self._of_options(request, methods)
        if path == COLLECTIONS and method in (b"GET", b"HEAD"):
            return self._of_list(request)
        if page and method in (b"GET", b"HEAD"):
            return page()
        said = f"the method must be one of {methods.decode()}"
        answer = error(405, said)
        return Answer(405, answer.body, (*answer.headers, (b"Allow", methods)))

    def _of_options(self, request: Request, methods: bytes) -> Answer:
        origin = request.headers.get(b"origin", b"")
        if not origin:
            return Answer(204, headers=((b"Allow", methods), NO_STORE))
        if not self.origins.allows(origin, request.headers.get(b"host", b"")):
            return error(403, "this origin is not in allow_origins of the section edge: add it there")
        return preflight()

    def _of_list(self, request: Request) -> Answer:
        held = request.headers.get(b"if-none-match", b"")
        if held.strip() == b"*" or self._collections.etag.encode() in map(_strong, held.split(b",")):
            return Answer(304, headers=self._list_headers[1:])
        return Answer(200, self._collections.body, self._list_headers)


def _strong(tag: bytes) -> bytes:
    """Return a tag without the mark by which proxies weaken it."""
    return tag.strip().removeprefix(b"W/")


def written(checked: CheckedUpload) -> Answer:
    """Return the answer to an upload that Kafka has."""
    return json_answer({"rejected": checked.rejected}) if checked.rejected else TAKEN


def refused(checked: CheckedUpload) -> Answer:
    """Return the answer to an upload without a good group."""
    if checked.is_outdated:
        status = 409
        said = (
            "the collections of this upload are outdated: fetch /v1/collections, and drop these reports, "
            "since what is randomized already must not be randomized again"
        )
    else:
        status, said = 400, "no group can be counted: see the reasons"
    body = to_json({"error": said, "rejected": checked.rejected})
    return Answer(status, body, error(status, said).headers)
