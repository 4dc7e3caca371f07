"""An OIDC provider on loopback: keys for brokers, tokens by client credentials; it can refuse and go away."""

import base64
import json
import secrets
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.brokers.secured.certificates import Issued

ISSUER, AUDIENCE = "https://login.test", "kafka"


def token_of_folder() -> tuple[str, float]:
    """Return the token of the file `given`, and a lifetime in seconds: a `token_provider`."""
    return Path("given").read_text(), 300.0


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that go away, or do not trust us."""


class IdentityProvider:
    """Serves `/keys` and `/token` within a with block.

    Parameters
    ----------
    lifetime_seconds : see below.
    shown : the certificate that connections from now on are shown; None: http.

    Attributes
    ----------
    lifetime_seconds, audience : of tokens from now on.
    answer : bytes that `/token` answers instead; None: a token.
    status : of that answer, or of each one if it is not 200.
    requests : how often a token was asked for.
    shown : see above; not None, if it was not at first.
    pause_seconds : between two bytes of that answer.
    """

    def __init__(self, lifetime_seconds: float = 300.0, shown: Issued | None = None) -> None:
        self.lifetime_seconds, self.audience = lifetime_seconds, AUDIENCE
        self.answer: bytes | None = None
        self.status = 200
        self.shown, self.pause_seconds = shown, 0.0
        self.requests = 0
        self.scopes: list[str] = []
        self.client_secret = secrets.token_urlsafe(12)
        self._key = rsa.generate_private_key(65537, 2048)
        self._other_key = rsa.generate_private_key(65537, 2048)
        self._port = 0
        self._server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def keys_url(self) -> str:
        """Address for `sasl.oauthbearer.jwks.endpoint.url`."""
        return f"{self._origin}/keys"

    @property
    def token_endpoint(self) -> str:
        """Address for clients."""
        return f"{self._origin}/token"

    @property
    def _origin(self) -> str:
        return f"http{'s' if self.shown else ''}://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Answer, on the same port as before."""
        self._server = _Server(("127.0.0.1", self._port), self._handler())
        self._port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        """Go away: connections are refused."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def use_keys_of(self, other: "IdentityProvider") -> None:
        """Sign tokens like another provider."""
        self._key = other._key

    def token(self, subject: str, *, is_of_other_key: bool = False, **claims: object) -> str:
        """Return a signed token; claims replace its own."""
        now = time.time()
        all_claims = {
            "iss": ISSUER,
            "aud": self.audience,
            "sub": subject,
            "iat": int(now),
            "exp": int(now + self.lifetime_seconds),
        } | claims
        parts = [{"alg": "RS256", "typ": "JWT", "kid": "one"}, all_claims]
        signed = ".".join(_base64(json.dumps(each).encode()) for each in parts)
        key = self._other_key if is_of_other_key else self._key
        return f"{signed}.{_base64(key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"

    def _keys(self) -> bytes:
        public = self._key.public_key().public_numbers()
        key = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "one"}
        return json.dumps({"keys": [key | {"n": _number(public.n), "e": _number(public.e)}]}).encode()

    def _grant(self, authorization: str, form: str) -> tuple[int, bytes]:
        self.requests += 1
        if self.answer is not None or self.status != 200:
            return self.status, self.answer or b"{}"
        fields = parse_qs(form)
        self.scopes += fields.get("scope", [])
        user, _, password = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
        if password != self.client_secret or fields.get("grant_type") != ["client_credentials"]:
            return 401, b'{"error": "invalid_client", "error_description": "not shown"}'
        answer = {
            "access_token": self.token(user),
            "token_type": "Bearer",
            "expires_in": self.lifetime_seconds,
        }
        return 200, json.dumps(answer).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def setup(self) -> None:
                if provider.shown is not None:
                    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
                    context.load_cert_chain(provider.shown.certificate_file, provider.shown.key_file)
                    self.request = context.wrap_socket(self.request, server_side=True)
                super().setup()

            def do_GET(self) -> None:
                self._answer(200, provider._keys())

            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._answer(*provider._grant(self.headers.get("Authorization", ""), form))

            def log_message(self, *_: object) -> None:
                pass

            def _answer(self, status: int, body: bytes) -> None:
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", provider.keys_url)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if not provider.pause_seconds:
                    self.wfile.write(body)
                    return
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    time.sleep(provider.pause_seconds)

        return Handler


def broker_settings(provider: IdentityProvider) -> dict[str, object]:
    """Return settings by which the secured broker's listener `plain_servers` takes its tokens instead."""
    listener = "listener.name.plain"
    return {
        f"{listener}.sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}.oauthbearer.sasl.jaas.config": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
        ),
        f"{listener}.oauthbearer.sasl.server.callback.handler.class": (
            "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        "sasl.oauthbearer.jwks.endpoint.url": provider.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.clock.skew.seconds": 0,
    }


def java_options(provider: IdentityProvider) -> str:
    """Return what KAFKA_JVM_PERFORMANCE_OPTS must have: Java asks only these addresses."""
    return f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.keys_url}"
