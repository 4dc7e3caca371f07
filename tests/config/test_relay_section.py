"""The section `relay` of the collection file."""

from functools import partial
from pathlib import Path

import pytest

from deniable.config.file import load
from deniable.config.relay_secret import relay_secret
from deniable.config.sections import RelaySection
from deniable.deploy.services.relay.command import relay_config
from deniable.protocol.secrets.secret import SecretError
from deniable.relay.keys import RelayKeys
from tests.support.deploy.collection_texts import WHOLE, read
from tests.support.messages import PinMessages

CANARY = """\
  - {name: canary, mechanism: k-rr, size: 4, other: false, epsilon: 2.0, canary: true, window_seconds: 60,
     grace_seconds: 40, minimum_reports: 1000, budget: none}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deniable.yaml"


def test_without_the_section_no_device_uploads(file: Path) -> None:
    loaded = read(file, WHOLE)
    assert (loaded.relay, loaded.takes_uploads, loaded.topics.takes_uploads) == (None, False, False)
    assert loaded.delivery_seconds == 20


@pytest.mark.parametrize("text", ["relay: {}\n", "relay:\n"])
def test_an_empty_section_takes_all_defaults(file: Path, text: str) -> None:
    loaded = read(file, WHOLE + text)
    assert loaded.relay == RelaySection()
    assert loaded.topics.takes_uploads
    section = loaded.relay
    assert (section.batch_reports, section.shuffle_reports, section.pack_reports) == (10_000, 1000, 1000)
    assert (section.window_uploads, section.idle_seconds, section.delivery_seconds) == (4_000_000, 1.0, 20)


def test_environment_overrides_and_begins_the_section(file: Path) -> None:
    file.write_text(WHOLE)
    loaded = load(file, environment={"DENIABLE_RELAY__SHUFFLE_REPORTS": "77"})
    assert loaded.relay == RelaySection(shuffle_reports=77)


def test_messages(file: Path, pin_messages: PinMessages) -> None:
    """A grace in which relays cannot deliver is refused beside other mistakes; the canary's is longer."""
    sections = {
        "a field is misspelt": "relay: {shufle_reports: 3}\n",
        "no grace is left, and idle_seconds is 0": "relay: {delivery_seconds: 30, idle_seconds: 0}\n",
        "the secret's name is empty": 'relay: {secret_file: ""}\n',
    }
    pin_messages({what: partial(read, file, WHOLE + CANARY + text) for what, text in sections.items()})
    read(file, WHOLE + CANARY + "relay: {delivery_seconds: 29}\n")


def test_relays_take_uploads_until_they_need_the_rest_of_the_grace(file: Path) -> None:
    """Canaries included: producers send them over HTTP, too."""
    loaded = read(file, WHOLE + CANARY + "relay: {delivery_seconds: 7, batch_reports: 50}\n")
    config = relay_config(loaded, RelayKeys(relay_secret(loaded)))
    assert [each.grace_seconds for each in config.settings.collections] == [23, 23, 33]
    assert config.settings.batch_reports == 50
    assert sorted(config.names.values()) == ["canary", "carrier", "destination"]


def test_a_secret_is_created_once_and_a_configured_one_never(file: Path, pin_messages: PinMessages) -> None:
    loaded = read(file, WHOLE + "relay: {}\n")
    first = RelayKeys(relay_secret(loaded)).check
    assert RelayKeys(relay_secret(loaded)).check == first
    secret = file.parent / ".deniable" / "relay-secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    named = read(file, WHOLE + "relay: {secret_file: shared}\n")
    (file.parent / "short").write_bytes(b"short")
    (file.parent / "short").chmod(0o600)
    short = read(file, WHOLE + "relay: {secret_file: short}\n")
    with pytest.raises(SecretError):
        RelayKeys(relay_secret(named))
    secret.rename(file.parent / "shared")
    assert RelayKeys(relay_secret(named)).check == first
    absent = read(file, WHOLE + "relay: {secret_file: absent}\n")
    pin_messages(
        {
            "no configured secret": partial(relay_secret, absent),
            "no secret where none is created": partial(relay_secret, loaded, creates=False),
            "too few bytes": partial(relay_secret, short),
        }
    )
