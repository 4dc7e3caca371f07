"""Section `edge`: defaults, ranges, files that belong together, origins."""

from pathlib import Path

import pytest

from deploy.config.checks import origin_sent
from deploy.config.sections import EdgeSection
from tests.support.deploy.collection_texts import WHOLE, read, refusal


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


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("allow_origins: [https://shop.example/]", "edge: allow_origins must have origins such as https://"),
        ("allow_origins: [https://SHOP.example]", "edge: allow_origins must have origins such as https://"),
        ("allow_origins: [shop.example]", "edge: allow_origins must have origins such as https://"),
        ("allow_origins: ['null']", "edge: allow_origins must have origins such as https://"),
        ("allow_origins: ['*', https://a.example]", "edge: allow_origins must have origins such as https://"),
        (
            "allow_origins: [https://a.b, https://a.b]",
            "edge: allow_origins must be distinct, got 'https://a.b'",
        ),
        ("certificate_file: c.pem", "edge: certificate_file and key_file belong together"),
        ("signing_key_file: ''", "edge: signing_key_file must not be empty: leave it out"),
        ("uploads_per_minute: -1", "edge: uploads_per_minute must be in [0, 1000000000], got -1"),
        ("trusted_proxies: true", "edge.trusted_proxies: must be an integer in [0, 100], got True"),
        (
            "upload_per_minute: 1",
            "edge: unknown field `upload_per_minute`; did you mean `uploads_per_minute`?",
        ),
    ],
)
def test_what_is_refused(file: Path, fields: str, said: str) -> None:
    assert refusal(file, f"edge: {{{fields}}}\n{WHOLE}").startswith(said)
