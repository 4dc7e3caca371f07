"""Answers and their bytes. Pure."""

import json
from dataclasses import dataclass, field
from http import HTTPStatus

NO_STORE = (b"Cache-Control", b"no-store")
JSON = (b"Content-Type", b"application/json")

_REASONS = {each.value: each.phrase.encode() for each in HTTPStatus}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered to a request.

    Parameters
    ----------
    status : of HTTP.
    body : bytes; empty for none.
    headers : names and values, without those that `render` adds.
    closes : whether the connection ends after it.
    """

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = field(default=(NO_STORE,))
    closes: bool = False


def error(status: int, said: str, *, closes: bool = False, retry_seconds: int = 0) -> Answer:
    """Return an error in JSON.

    Parameters
    ----------
    status : of HTTP.
    said : what is wrong, what is allowed and the remedy; no byte of the request's body.
    closes : whether the connection ends after it.
    retry_seconds : when to try again; 0 to say nothing about it.
    """
    return Answer(status, to_json({"error": said}), _headers(retry_seconds), closes)


def to_json(content: object) -> bytes:
    """Return compact JSON in UTF-8."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def json_answer(content: object, status: int = 200) -> Answer:
    """Return a body of JSON that nothing may store."""
    return Answer(status, to_json(content), (JSON, NO_STORE))


def _headers(retry_seconds: int) -> tuple[tuple[bytes, bytes], ...]:
    headers = (JSON, NO_STORE)
    return (*headers, (b"Retry-After", b"%d" % retry_seconds)) if retry_seconds else headers


def render(answer: Answer, shared: bytes, *, keeps: bool, with_body: bool = True) -> bytes:
    """Return the bytes to send.

    Parameters
    ----------
    answer : what to send.
    shared : header lines of this connection's answers at this time, each ended by CRLF.
    keeps : whether the connection stays open.
    with_body : False for an answer to HEAD.
    """
    parts = [b"HTTP/1.1 %d %s\r\n" % (answer.status, _REASONS[answer.status]), shared]
    parts += [b"%s: %s\r\n" % header for header in answer.headers]
    if answer.status not in (204, 304):
        parts.append(b"Content-Length: %d\r\n" % len(answer.body))
    if not keeps:
        parts.append(b"Connection: close\r\n")
    parts.append(b"\r\n")
    if with_body:
        parts.append(answer.body)
    return b"".join(parts)
