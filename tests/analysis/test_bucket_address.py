"""Wrong addresses of a bucket are found before the client is opened, which ends the process of one."""

from functools import partial

import pytest

from deniable.analysis.errors import WrongArgumentError
from deniable.analysis.export.bucket_address import bucket_and_prefix, check_endpoints
from tests.support.messages import PinMessages


@pytest.mark.parametrize("given", ["http://127.0.0.1:9000", "https://s3.example.com/x", "http://[::1]:9000"])
def test_addresses_and_other_variables_are_taken(given: str) -> None:
    check_endpoints({"AWS_ENDPOINT_URL": given, "AWS_REGION": "", "ENDPOINT": "x", "aws_endpoint": "x"})


@pytest.mark.parametrize(
    ("url", "parts"),
    [("s3://b", ("b", "")), ("s3://b/", ("b", "")), ("s3://my.b-1/x/y/", ("my.b-1", "x/y"))],
)
def test_url_has_a_bucket_and_a_prefix(url: str, parts: tuple[str, str]) -> None:
    assert bucket_and_prefix(url) == parts


def test_client_is_not_opened_with_a_wrong_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it panics, with a traceback of Rust on stderr and an exception that nothing catches."""
    pytest.importorskip("obstore", reason="the extra s3 is not installed")
    from deniable.analysis.export.bucket_prefix import BucketPrefix

    monkeypatch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:25455")
    with pytest.raises(WrongArgumentError, match="AWS_ENDPOINT_URL"):
        BucketPrefix("s3://telemetry/estimates")


def test_password_in_an_endpoint_is_not_repeated() -> None:
    with pytest.raises(WrongArgumentError, match="AWS_ENDPOINT_URL") as raised:
        check_endpoints({"AWS_ENDPOINT_URL": "http://me:hidden@host"})
    assert "hidden" not in str(raised.value)


def test_messages(pin_messages: PinMessages) -> None:
    endpoints = [
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
        "http://me:hidden@host",
    ]
    names = ["AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_endpoint"]
    urls = ["s3://", "s3:///x", "s3://b/x?y", "s3://b/#", "s3://b/../x", "s3://b/x/..", "s3://a b", "s3://[b"]
    pin_messages(
        {f"the endpoint {each!r}": partial(check_endpoints, {"AWS_ENDPOINT_URL": each}) for each in endpoints}
        | {f"{each} without a scheme": partial(check_endpoints, {each: "localhost:9000"}) for each in names}
        | {f"the prefix {each!r}": partial(bucket_and_prefix, each) for each in urls}
    )
