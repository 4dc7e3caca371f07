"""Tokens for MSK are requests signed by AWS's Signature Version 4, recomputed here from its documentation."""

import base64
import hashlib
import hmac
import sys
import time
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit

import pytest

from deniable.cluster.logins.token_provider import TokenProvider
from deniable.cluster.logins.token_sources import of_signer
from deniable.cluster.logins.tokens import TokenError
from deniable.cluster.security import Security

# Of AWS's documentation, in all its examples.
ACCESS_KEY, SECRET_KEY = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EMPTY = hashlib.sha256(b"").hexdigest()


def signature(host: str, path: str, query: Mapping[str, str], payload: str, secret: str) -> str:
    """Sign a presigned GET, of which `host` is the only signed header.

    Source: AWS, "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)".
    """
    pairs = "&".join(
        f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query)
    )
    request = "\n".join(["GET", path, pairs, f"host:{host}\n", "host", payload])
    scope = query["X-Amz-Credential"].partition("/")[2]
    hashed = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, hashed])
    key = f"AWS4{secret}".encode()
    for part in (*scope.split("/"), text):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def test_the_published_example_is_reproduced() -> None:
    query = {
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{ACCESS_KEY}/20130524/us-east-1/s3/aws4_request",
        "X-Amz-Date": "20130524T000000Z",
        "X-Amz-Expires": "86400",
        "X-Amz-SignedHeaders": "host",
    }
    signed = signature("examplebucket.s3.amazonaws.com", "/test.txt", query, "UNSIGNED-PAYLOAD", SECRET_KEY)
    assert signed == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("aws_msk_iam_sasl_signer", reason="the extra msk is not installed")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)


@pytest.mark.usefixtures("credentials")
def test_a_token_is_signed_for_its_region() -> None:
    token = of_signer("eu-central-1")
    assert token.ends == pytest.approx(time.time() + 900, abs=10)
    url = urlsplit(base64.urlsafe_b64decode(token.text + "=" * (-len(token.text) % 4)).decode())
    query = dict(parse_qsl(url.query))
    signed = query.pop("X-Amz-Signature")
    assert query.pop("User-Agent").startswith("aws-msk-iam-sasl-signer-python/")
    assert (url.scheme, url.netloc, query["Action"]) == (
        "https",
        "kafka.eu-central-1.amazonaws.com",
        "kafka-cluster:Connect",
    )
    assert query["X-Amz-Credential"].endswith("/eu-central-1/kafka-cluster/aws4_request")
    assert signed == signature(url.netloc, url.path, query, EMPTY, SECRET_KEY)
    assert signed != signature(url.netloc, url.path, query, EMPTY, SECRET_KEY[:-1])


@pytest.mark.usefixtures("credentials")
def test_clients_get_it_as_a_token() -> None:
    security = Security(mechanism="AWS_MSK_IAM", region="eu-central-1")
    settings = security.client_settings()
    assert settings["sasl_mechanism"] == "OAUTHBEARER"
    assert f"{settings['sasl_oauth_token_provider'].token()}" == f"{TokenProvider(security.login).token()}"


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(TokenError) as caught:
        of_signer("eu-central-1")
    assert "deniable[msk]" in caught.value.remedy
