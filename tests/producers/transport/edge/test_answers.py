"""What an answer means for a pack: it is given up only in an edge's own words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable.producers.errors import HopelessError
from deniable.producers.metrics.definitions import OTHER_REASON
from deniable.producers.transport.edge.answers import (
    LONGEST_PAUSE_SECONDS,
    HttpAnswer,
    Later,
    Rejected,
    Taken,
    TooLarge,
    pause_seconds,
    verdict_of,
)
from deniable.protocol.wire import GROUP_REASONS
from tests.support.messages import PinMessages

URL = "https://edge.example"
HTML = b"<html>hello</html>"
STATUSES = (200, 201, 307, 400, 401, 403, 404, 409, 415, 429, 500, 503)


def judged(status, content=b"", **headers):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return verdict_of(HttpAnswer(status, headers, body), URL, lambda: 1000.0)


def why(status, content=b""):
    verdict = judged(status, content)
    assert isinstance(verdict, Later)
    return verdict.why


def test_taken_and_too_large():
    assert judged(204) == Taken()
    assert judged(413, HTML) == TooLarge()


@pytest.mark.parametrize("reason", GROUP_REASONS)
@pytest.mark.parametrize("status", [200, 400, 409])
def test_rejected_group(status, reason):
    assert judged(status, {"error": "…", "rejected": [[0, reason]]}) == Rejected(reason)


def test_unknown_words_are_not_repeated():
    assert judged(200, {"rejected": [[0, "a person's name"]]}) == Rejected(OTHER_REASON)
    assert judged(200, {"rejected": [[0, ["list"]]]}) == Rejected(OTHER_REASON)
    assert judged(409, {"error": "outdated"}) == Rejected("unknown_collection")
    assert judged(400, {"error": "not an upload"}) == Rejected(OTHER_REASON)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        HTML,
        b"[]",
        b"null",
        b"{}",
        b'{"rejected": []}',
        b'{"rejected": [[1, "malformed"]]}',
        b"[" * 50_000,
    ],
)
@pytest.mark.parametrize("status", [200, 400, 409])
def test_answers_of_others_keep_the_pack(status, body):
    assert isinstance(judged(status, body), Later)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 401, 403, 404, 405, 407, 411, 415, 201, 206])
def test_hopeless_answers(status):
    error = why(status, HTML)
    assert isinstance(error, HopelessError)
    assert f"({status})" in str(error)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_failures_that_may_pass(status):
    error = why(status, HTML)
    assert not isinstance(error, HopelessError)
    assert f"({status})" in str(error)


def test_messages(pin_messages: PinMessages) -> None:
    pin_messages({f"status {status}": lambda status=status: str(why(status, HTML)) for status in STATUSES})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("", 0),
        ("30", 30),
        ("0", 0),
        (" 7 ", 7),
        ("-5", 0),
        ("1.5", 0),
        ("٣", 0),
        ("9" * 400, LONGEST_PAUSE_SECONDS),
        ("Thu, 01 Jan 1970 00:17:00 GMT", 20),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Thu, 01 Jan 2099 00:00:00 GMT", LONGEST_PAUSE_SECONDS),
        ("soon", 0),
    ],
)
def test_retry_after(text, seconds):
    assert pause_seconds(HttpAnswer(503, {"retry-after": text}, b""), lambda: 1000.0) == seconds


@pytest.mark.slow
@given(status=st.integers(100, 599), body=st.binary(max_size=60), later=st.text(max_size=40))
def test_any_answer_has_a_verdict(status, body, later):
    verdict = judged(status, body, **{"retry-after": later})
    assert isinstance(verdict, Later) or (verdict == Taken()) == (status == 204)


@pytest.mark.slow
@given(
    content=st.recursive(
        st.none() | st.integers() | st.text(max_size=9), lambda each: st.lists(each) | st.dictionaries(
            st.sampled_from(["rejected", "error", "x"]), each
        ), max_leaves=9,
    )
)  # fmt: skip
def test_any_json_has_a_verdict(content):
    for status in (200, 400, 409):
        verdict = judged(status, content)
        assert isinstance(verdict, Later) or verdict.reason in (*GROUP_REASONS, OTHER_REASON)
