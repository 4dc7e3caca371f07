"""Which addresses of edges are allowed."""

from pathlib import Path

import pytest

from producers.transport.edge.address import EdgeAddress

WRONG = "deliver must be kafka, or the URL of an edge"


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


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "kafkas",
            "edge.example",
            "https://",
            "https://:443",
            "ftp://edge.example",
            "https://a b.example",
        ),
        *(
            "https://edge.example?x=1",
            "https://edge.example#a",
            "https://edge.example:0",
            "https://e.x:99999",
        ),
        *("https://edge.example/\r\nHost: a", "https://[::1", "https://édge.example", "https://a..b"),
        *("https://edge.example/a%20b", "https://edge.example:port", "http:\\\\127.0.0.1", "//127.0.0.1:80"),
    ],
)
def test_other_addresses_are_refused(url):
    with pytest.raises(ValueError, match=WRONG):
        EdgeAddress(url)


def test_password_in_the_address_is_not_shown():
    with pytest.raises(ValueError, match=WRONG) as caught:
        EdgeAddress("https://user:secret@edge.example")
    assert str(caught.value).endswith("got '…@edge.example'")


@pytest.mark.parametrize("host", ["edge.example", "10.0.0.7", "[2001:db8::1]", "127.0.0.1.example"])
def test_plain_http_only_to_this_machine(host):
    with pytest.raises(
        ValueError, match="deliver must be an https:// URL unless the edge is on this machine"
    ):
        EdgeAddress(f"http://{host}:8330")


def test_other_fields_are_checked():
    with pytest.raises(ValueError, match="edge_ca_file needs an https:// URL in deliver, got http"):
        EdgeAddress("http://127.0.0.1:8330", Path("ca.pem"))
    for key in ("", "abc", "A" * 44, "é"):
        with pytest.raises(ValueError, match="edge_public_key must be the base64 text of 32 bytes"):
            EdgeAddress("http://127.0.0.1:8330", None, key)
    assert EdgeAddress("http://127.0.0.1:8330", None, "A" * 43 + "=").key == bytes(32)
