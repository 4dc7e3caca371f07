"""What is answered to a request: every status, its headers, and cross-origin rules. No sockets."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.edge.collection_list import CollectionList
from deniable.edge.intake.acceptance import CheckedUpload
from deniable.edge.intake.rate_limits import RateLimits
from deniable.edge.web.answers import Answer, render
from deniable.edge.web.connection import path_of, unavailable
from deniable.edge.web.origins import AllowedOrigins
from deniable.edge.web.requests import (
    TAKEN,
    EdgePages,
    Request,
    RequestHandler,
    refused,
    written,
)
from deniable.protocol.uploads.upload import MAX_UPLOAD_BYTES
from tests.support.edge.uploads import TERMS, group, upload

UPLOAD = "application/vnd.deniable.reports"
LIST = CollectionList(b'{"signed":"","signature":"","public_key":""}', '"abc"')


def handler(origins=("https://shop.example",), per_minute=0, proxies=0):
    pages = EdgePages({b"/healthz": lambda: Answer(200, b"{}")}, {})
    limits = RateLimits(per_minute)
    return RequestHandler(TERMS, LIST, 300, AllowedOrigins(origins), limits, proxies, pages)


def ask(method, path, body=b"", of=None, **headers):
    """Return the answer, or the upload to write."""
    lines = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
    if body and "content_length" not in headers:
        lines[b"content-length"] = str(len(body)).encode()
    request = Request(method.encode(), path.encode(), lines, b"peer")
    found = of or handler()
    decided = found.of_head(request, 100.0) or found.of_body(request, body, 1_767_225_660.0)
    return refused(decided) if isinstance(decided, CheckedUpload) and not decided.taken else decided


def post(body, of=None, **headers):
    return ask("POST", "/v1/reports", body, of, **{"content_type": UPLOAD} | headers)


def good(**changes):
    return upload(group(start=1_767_225_600, **changes))


def test_good_upload_is_to_be_written():
    body = good()
    found = post(body)
    assert isinstance(found, CheckedUpload)
    assert found.taken == body
    assert written(found) is TAKEN
    assert (TAKEN.status, TAKEN.body, dict(TAKEN.headers)) == (204, b"", {b"Cache-Control": b"no-store"})


@pytest.mark.parametrize("kind", [UPLOAD, f"{UPLOAD}; v=1", "text/plain;charset=UTF-8", "TEXT/PLAIN"])
def test_content_types_of_uploads(kind):
    assert isinstance(post(good(), content_type=kind), CheckedUpload)


def test_partly_bad_upload_says_which_groups_are_rejected():
    body = upload(group(start=5), group(start=1_767_225_600))
    answer = written(post(body))
    assert (answer.status, json.loads(answer.body)) == (200, {"rejected": [[0, "malformed"]]})


@pytest.mark.parametrize(
    ("status", "headers", "said"),
    [
        (411, {"content_length": ""}, "an upload must have a Content-Length: send it"),
        (411, {"transfer_encoding": "chunked"}, "the body must have a Content-Length, got Transfer-Encoding"),
        (413, {"content_length": "65537"}, "the body must have at most 65536 bytes"),
        (413, {"content_length": "0" * 30 + "1"}, "the body must have at most 65536 bytes"),
        (415, {"content_type": "application/json"}, f"Content-Type must be {UPLOAD} or text/plain"),
        (415, {"content_type": ""}, f"Content-Type must be {UPLOAD} or text/plain"),
        (415, {"content_encoding": "gzip"}, "an upload must not be compressed"),
        (403, {"origin": "https://other.example"}, "this origin is not in allow_origins"),
        (403, {"origin": "null"}, "this origin is not in allow_origins"),
    ],
)
def test_head_that_is_refused(status, headers, said):
    answer = post(good(), **headers)
    assert answer.status == status
    assert json.loads(answer.body)["error"].startswith(said)
    assert (b"Cache-Control", b"no-store") in answer.headers
    assert answer.closes == (status in (411, 413))  # its body is not read


def test_largest_upload_is_read():
    assert post(b"x" * MAX_UPLOAD_BYTES).status == 400


def test_undecodable_body():
    answer = post(b"secret bytes")
    assert (answer.status, json.loads(answer.body)) == (
        400,
        {"error": "the body is not an upload of this version: malformed, it does not begin like one"},
    )
    assert post(good()[:4] + b"\x02" + good()[5:]).body.endswith(b'unsupported_version"}')


@pytest.mark.parametrize(
    ("groups", "status"),
    [
        ([{"fingerprint": 5}], 409),
        ([{"fingerprint": 5}, {"rows": b"\x03"}], 409),
        ([{"rows": b"\x03"}, {"cohort": 1}], 400),
    ],
)
def test_upload_without_a_good_group(groups, status):
    found = [group(**{"start": 1_767_225_600} | each) for each in groups]
    answer = post(upload(*found))
    body = json.loads(answer.body)
    assert (answer.status, len(body["rejected"])) == (status, len(groups))
    assert ("fetch /v1/collections" in body["error"]) == (status == 409)


def test_rate_limit_says_when_to_try_again():
    limited = handler(per_minute=6)
    assert [isinstance(post(good(), limited), CheckedUpload) for _ in range(7)] == [True] * 6 + [False]
    answer = post(good(), limited)
    assert (answer.status, dict(answer.headers)[b"Retry-After"]) == (429, b"10")
    assert "too many uploads from this network" in json.loads(answer.body)["error"]
    assert ask("GET", "/v1/collections", of=limited).status == 200  # not an upload


def test_rate_limit_behind_a_proxy_counts_by_client():
    limited = handler(per_minute=1, proxies=1)
    assert isinstance(post(good(), limited, x_forwarded_for="192.0.2.1"), CheckedUpload)
    assert isinstance(post(good(), limited, x_forwarded_for="192.0.2.2"), CheckedUpload)
    assert post(good(), limited, x_forwarded_for="9.9.9.9, 192.0.2.1").status == 429


def test_unavailable_says_to_send_the_same_upload_again():
    answer = unavailable("Kafka takes no uploads now")
    assert (answer.status, dict(answer.headers)[b"Retry-After"]) == (503, b"5")
    assert json.loads(answer.body)["error"].startswith("Kafka takes no uploads now; send the same upload")


@pytest.mark.parametrize(
    "path", ["/", "/v1/report", "/v1/reports/", "/v2/reports", "/try", "/try/index.html"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_unknown_path(method, path):
    answer = ask(method, path)
    assert answer.status == 404
    assert "/v1/reports" in json.loads(answer.body)["error"]


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/v1/reports", "OPTIONS, POST"),
        ("PUT", "/v1/reports", "OPTIONS, POST"),
        ("POST", "/v1/collections", "GET, HEAD, OPTIONS"),
        ("DELETE", "/healthz", "GET, HEAD, OPTIONS"),
    ],
)
def test_other_method(method, path, allow):
    answer = ask(method, path)
    assert (answer.status, dict(answer.headers)[b"Allow"]) == (405, allow.encode())
    assert json.loads(answer.body)["error"] == f"the method must be one of {allow}"


def test_list_of_collections_and_its_tag():
    answer = ask("GET", "/v1/collections")
    headers = dict(answer.headers)
    assert (answer.status, answer.body) == (200, LIST.body)
    assert (headers[b"ETag"], headers[b"Cache-Control"]) == (b'"abc"', b"public, max-age=300")
    for held in ('"abc"', 'W/"abc"', '"x", "abc"', "*"):
        again = ask("GET", "/v1/collections", if_none_match=held)
        assert (again.status, again.body, dict(again.headers)[b"ETag"]) == (304, b"", b'"abc"')
    assert ask("GET", "/v1/collections", if_none_match='"ab"').status == 200


def test_preflight_of_a_listed_origin():
    answer = ask("OPTIONS", "/v1/reports", origin="https://shop.example")
    headers = dict(answer.headers)
    assert answer.status == 204
    assert headers[b"Access-Control-Allow-Methods"] == b"GET, POST"
    assert headers[b"Access-Control-Allow-Headers"] == b"Content-Type"
    assert headers[b"Access-Control-Max-Age"] == b"86400"
    assert ask("OPTIONS", "/v1/reports", origin="https://other.example").status == 403
    assert dict(ask("OPTIONS", "/v1/reports").headers)[b"Allow"] == b"OPTIONS, POST"


def test_lines_for_an_origin():
    origins = AllowedOrigins(("https://shop.example",))
    exposed = b"Access-Control-Expose-Headers: ETag, Retry-After\r\n"
    mirrored = b"Access-Control-Allow-Origin: https://shop.example\r\n"
    assert origins.lines(b"https://shop.example") == b"Vary: Origin\r\n" + mirrored + exposed
    assert origins.lines(b"https://other.example") == origins.lines(b"") == b"Vary: Origin\r\n"
    assert AllowedOrigins(("*",)).lines(b"x") == b"Access-Control-Allow-Origin: *\r\n" + exposed


@pytest.mark.parametrize(
    ("origins", "origin", "host", "is_allowed"),
    [
        ((), b"", b"edge.example", True),
        ((), b"https://edge.example", b"edge.example", True),  # the try page
        ((), b"https://edge.example", b"", False),
        ((), b"https://edge.example.evil.example", b"edge.example", False),
        (("https://shop.example",), b"https://shop.example", b"", True),
        (("https://shop.example",), b"http://shop.example", b"", False),
        (("https://shop.example",), b"https://shop.example:8443", b"", False),
        (("https://shop.example",), b"null", b"null", False),
        (("*",), b"null", b"", True),
    ],
)
def test_origins_are_compared_exactly(origins, origin, host, is_allowed):
    assert AllowedOrigins(origins).allows(origin, host) == is_allowed


def test_kinds_of_paths():
    found = [handler().kind_of(each) for each in (b"/v1/reports", b"/v1/collections", b"/healthz", b"/x")]
    assert found == ["reports", "collections", "probes", "other"]


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/v1/reports?x=1", b"/v1/reports"),
        (b"http://edge.example/v1/reports", b"/v1/reports"),
        (b"http://edge.example", b"/"),
        (b"*", b"*"),
        (b"/x://y", b"/x://y"),
    ],
)
def test_path_of_a_target(target, path):
    assert path_of(target) == path


def test_rendered_answer():
    lines = b"Date: now\r\n"
    head = b"HTTP/1.1 200 OK\r\nDate: now\r\nCache-Control: no-store\r\nContent-Length: 2\r\n"
    assert render(Answer(200, b"{}"), lines, keeps=True) == head + b"\r\n{}"
    assert render(Answer(200, b"{}"), lines, keeps=False) == head + b"Connection: close\r\n\r\n{}"
    assert render(Answer(200, b"{}"), lines, keeps=True, with_body=False) == head + b"\r\n"
    assert b"Content-Length" not in render(TAKEN, lines, keeps=True)


@pytest.mark.slow
@given(
    method=st.sampled_from(["GET", "POST", "OPTIONS", "HEAD", "PUT", ""]),
    path=st.sampled_from(["/v1/reports", "/v1/collections", "/healthz", "/x", ""]) | st.text(max_size=20),
    headers=st.dictionaries(
        st.sampled_from(["content_length", "content_type", "origin", "host", "if_none_match", "expect"]),
        st.sampled_from([UPLOAD, "*", "5", "-1", "https://shop.example"]) | st.text(max_size=20),
    ),
    body=st.binary(max_size=200) | st.builds(good),
)
def test_any_request_is_answered_or_written(method, path, headers, body):
    found = ask(method, path, body, **headers)
    answer = written(found) if isinstance(found, CheckedUpload) else found
    assert answer.status in {200, 204, 304, 400, 403, 404, 405, 409, 411, 413, 415}
    rendered = render(answer, b"", keeps=True)
    assert rendered.startswith(b"HTTP/1.1 ")
