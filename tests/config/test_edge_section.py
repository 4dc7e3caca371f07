"""Section `edge`: defaults, ranges, files that belong together, origins."""

from functools import partial
from pathlib import Path

import pytest

from deniable.config.checks import origin_sent
from deniable.config.sections import EdgeSection
from tests.support.deploy.collection_texts import WHOLE, read
from tests.support.messages import PinMessages


@pytest.fixture
def file(tmp_path):
    return tmp_path / "deniable.yaml"


def test_absent_and_empty_sections_differ(file: Path) -> None:
    assert read(file, WHOLE).edge is None
    for empty in ("edge: {}\n", "edge:\n"):
        assert read(file, empty + WHOLE).edge == EdgeSection()


def test_environment_overrides_fields_and_begins_the_section(file: Path) -> None:
    loaded = read(file, WHOLE, DENIABLE_EDGE__UPLOADS_PER_MINUTE="0", DENIABLE_EDGE__TRUSTED_PROXIES="2")
    assert loaded.edge == EdgeSection(uploads_per_minute=0, trusted_proxies=2)


@pytest.mark.parametrize(
    "origin",
    ["https://shop.example", "http://localhost:8330", "https://[2001:db8::1]:8443", "http://127.0.0.1", "*"],
)
def test_origins(file: Path, origin: str) -> None:
    section = read(file, f"edge: {{allow_origins: ['{origin}']}}\n{WHOLE}").edge
    assert section is not None
    assert section.allow_origins == [origin]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("https://shop.example", "https://shop.example"),
        ("https://shop.example:443", "https://shop.example"),
        ("http://shop.example:80", "http://shop.example"),
        ("http://shop.example:443", "http://shop.example:443"),
        ("https://shop.example:0443", "https://shop.example"),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("https://shop.example:99999", None),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://127.1", None),
        ("http://[0:0::1]:8000", "http://[::1]:8000"),
        ("http://[::1]", "http://[::1]"),
        ("http://[1.2]", None),
    ],
)
def test_origins_are_known_as_browsers_send_them(file: Path, given: str, sent: str | None) -> None:
    read(file, f"edge: {{allow_origins: ['{given}']}}\n{WHOLE}")
    assert origin_sent(given) == sent


def test_messages(file: Path, pin_messages: PinMessages) -> None:
    fields = {
        "an origin has a path": "allow_origins: [https://shop.example/]",
        "an origin has capital letters": "allow_origins: [https://SHOP.example]",
        "an origin without a scheme": "allow_origins: [shop.example]",
        "the origin null": "allow_origins: ['null']",
        "all origins beside one": "allow_origins: ['*', https://a.example]",
        "an origin twice": "allow_origins: [https://a.b, https://a.b]",
        "a certificate without a key": "certificate_file: c.pem",
        "an empty name of a file": "signing_key_file: ''",
        "uploads_per_minute is negative": "uploads_per_minute: -1",
        "trusted_proxies is true": "trusted_proxies: true",
        "a field is misspelt": "upload_per_minute: 1",
    }
    texts = {what: f"edge: {{{field}}}\n{WHOLE}" for what, field in fields.items()}
    pin_messages({what: partial(read, file, text) for what, text in texts.items()})
