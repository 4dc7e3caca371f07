"""Which addresses of edges are allowed."""

from functools import partial
from pathlib import Path

import pytest

from deniable.config.settings.edge_address import EdgeAddress
from tests.support.messages import PinMessages


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://127.0.0.1:8330", (False, "127.0.0.1", 8330, "")),
        ("http://localhost:8330/", (False, "localhost", 8330, "")),
        ("http://[::1]:8330", (False, "::1", 8330, "")),
        ("https://edge.example", (True, "edge.example", 443, "")),
        ("HTTPS://edge.example:8443/telemetry/", (True, "edge.example", 8443, "/telemetry")),
        ("https://10.0.0.7/a/b", (True, "10.0.0.7", 443, "/a/b")),
    ],
)
def test_parts(url, parts):
    edge = EdgeAddress(url)
    assert (edge.is_secured, edge.host, edge.port, edge.base_path) == parts


def test_messages(pin_messages: PinMessages) -> None:
    urls = {
        "no text": "",
        "another word": "kafkas",
        "no scheme": "edge.example",
        "no host": "https://",
        "a port without a host": "https://:443",
        "another scheme": "ftp://edge.example",
        "a space in the host": "https://a b.example",
        "a query": "https://edge.example?x=1",
        "a fragment": "https://edge.example#a",
        "port 0": "https://edge.example:0",
        "port 99999": "https://e.x:99999",
        "a second line": "https://edge.example/\r\nHost: a",
        "an open bracket": "https://[::1",
        "another alphabet": "https://édge.example",
        "an empty label": "https://a..b",
        "an escape in the path": "https://edge.example/a%20b",
        "a port that is no number": "https://edge.example:port",
        "backslashes": "http:\\\\127.0.0.1",
        "slashes only": "//127.0.0.1:80",
        "a password": "https://user:hunter2@edge.example",
        "another machine without TLS": "http://edge.example:8330",
    }
    keys = {"no key": "", "a short key": "abc", "a long key": "A" * 44, "a key in another alphabet": "é"}
    local = "http://127.0.0.1:8330"
    pin_messages(
        {what: partial(EdgeAddress, url) for what, url in urls.items()}
        | {what: partial(EdgeAddress, local, None, key) for what, key in keys.items()}
        | {"an authority without TLS": lambda: EdgeAddress(local, Path("ca.pem"))}
    )


@pytest.mark.parametrize("host", ["10.0.0.7", "[2001:db8::1]", "127.0.0.1.example"])
def test_plain_http_only_to_this_machine(host):
    with pytest.raises(ValueError, match="deliver"):
        EdgeAddress(f"http://{host}:8330")


def test_key_is_32_bytes():
    assert EdgeAddress("http://127.0.0.1:8330", None, "A" * 43 + "=").key == bytes(32)
