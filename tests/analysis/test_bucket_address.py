"""Wrong addresses of a bucket are found before the client is opened, which ends the process of one."""

import re

import pytest

from analysis.errors import WrongArgumentError
from analysis.export.bucket_address import bucket_and_prefix, check_endpoints

ALLOWED = "must be http:// or https://, a host, and a port from 1 to 65535 if it is not the scheme's, such as"
WRONG = [
    "",
    "127.0.0.1:25455",
    "localhost:9000",
    "s3.example.com",
    "http://",
    "http:///x",
    "http://127.0.0.1:99999",
    "http://127.0.0.1:0",
    "http://127.0.0.1:x",
    "http://[::1",
    "http://a b",
    "http://höst",
    "http://host?x",
    "ftp://host",
]


@pytest.mark.parametrize("name", ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_endpoint"])
@pytest.mark.parametrize("given", WRONG)
def test_wrong_endpoint_is_named_with_its_variable(name: str, given: str) -> None:
    with pytest.raises(WrongArgumentError) as raised:
        check_endpoints({name: given})
    assert str(raised.value) == f"{name} {ALLOWED} http://127.0.0.1:9000, got {given!r}"


@pytest.mark.parametrize("given", ["http://127.0.0.1:9000", "https://s3.example.com/x", "http://[::1]:9000"])
def test_addresses_and_other_variables_are_taken(given: str) -> None:
    check_endpoints({"AWS_ENDPOINT_URL": given, "AWS_REGION": "", "ENDPOINT": "x", "aws_endpoint": "x"})


def test_password_in_an_endpoint_is_not_repeated() -> None:
    with pytest.raises(
        WrongArgumentError, match=r"^AWS_ENDPOINT_URL must be an address without user"
    ) as raised:
        check_endpoints({"AWS_ENDPOINT_URL": "http://me:hidden@host"})
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "parts"),
    [("s3://b", ("b", "")), ("s3://b/", ("b", "")), ("s3://my.b-1/x/y/", ("my.b-1", "x/y"))],
)
def test_url_has_a_bucket_and_a_prefix(url: str, parts: tuple[str, str]) -> None:
    assert bucket_and_prefix(url) == parts


@pytest.mark.parametrize(
    "url", ["s3://", "s3:///x", "s3://b/x?y", "s3://b/#", "s3://b/../x", "s3://b/x/..", "s3://a b", "s3://[b"]
)
def test_url_that_is_no_prefix_is_refused(url: str) -> None:
    with pytest.raises(WrongArgumentError, match=rf"must be to s3://BUCKET/PREFIX, .* got {re.escape(url)}$"):
        bucket_and_prefix(url)


def test_client_is_not_opened_with_a_wrong_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it panics, with a traceback of Rust on stderr and an exception that nothing catches."""
    pytest.importorskip("obstore", reason="the extra s3 is not installed")
    from analysis.export.bucket_prefix import BucketPrefix

    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:25455")
    with pytest.raises(WrongArgumentError, match=rf"^AWS_ENDPOINT_URL {ALLOWED}"):
        BucketPrefix("s3://telemetry/estimates")
