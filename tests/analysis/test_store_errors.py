"""Texts of a store's client that no server here gives."""

import pytest

from analysis.export.store_errors import reason_of

HEAD = "Generic S3 error: Error performing PUT http://h:1/b/x in 4.03s, after 5 retries, max_retries: 5, "
CASES = [
    (
        f"{HEAD}retry_timeout: 3s  - HTTP error: odd\n\nDebug",
        "Error performing PUT http://h:1/b/x  - HTTP error: odd",
    ),
    (f"{HEAD}\n\nkind: TimedOut", "http://h:1: no answer in time"),
    (f"{HEAD}\n\ndns error", "http://h:1: the name of the host is not known"),
    (
        f"{HEAD}\n\nInvalidCertificate(UnknownIssuer)",
        "http://h:1: the certificate of the server is not trusted",
    ),
    (
        "Error performing GET http://h:1/b in 1.2µs - Server returned non-2xx status code: 502 Bad Gateway: ",
        "http://h:1 answered 502 Bad Gateway",
    ),
    (
        "Error performing PUT http://169.254.169.254/latest/api/token in 3.9ms - Server returned",
        "there are no credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor of this machine",
    ),
    ("<Code>A</Code><Message>x &#34;y&#34;.\nz.</Message><StringToSign>s</StringToSign>", 'A: x "y". z'),
    ("<Code>Odd</Code>", "Odd"),
    ("y" * 400, "y" * 300),
]


@pytest.mark.parametrize(("text", "reason"), CASES)
def test_reason_is_one_line_in_words(text: str, reason: str) -> None:
    assert reason_of(text) == reason
