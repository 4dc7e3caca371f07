"""The signing key's file: created once, never replaced, refused if it is not one."""

import stat
from base64 import b64decode
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from deniable.edge.signing_key import SigningKeyError, open_signing_key
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages


def test_default_key_is_created_once(tmp_path, caplog, pin_messages: PinMessages) -> None:
    path = tmp_path / ".deniable" / "edge-key.pem"
    key = open_signing_key(path, None)
    assert len(b64decode(key.public_key)) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert open_signing_key(path, None).public_key == key.public_key
    (shown,) = messages(caplog)
    pin_messages({"no key was there": lambda: shown})
    assert [each.name for each in path.parent.iterdir()] == ["edge-key.pem"]
    assert repr(key) == "SigningKey(…)"


def test_configured_key_is_never_created(tmp_path, pin_messages: PinMessages) -> None:
    given = tmp_path / "key.pem"
    pin_messages({"the configured key is missing": lambda: open_signing_key(tmp_path / "default.pem", given)})
    assert list(tmp_path.iterdir()) == []


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def a_key(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "key.pem"
    folder.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"secret bytes",
        pem(ec.generate_private_key(ec.SECP256R1())),
        pem(Ed25519PrivateKey.generate(), BestAvailableEncryption(b"x")),
        pem(Ed25519PrivateKey.generate())[:-40],
    ],
    ids=["empty", "other bytes", "another curve", "encrypted", "cut"],
)
def test_other_content_is_refused(tmp_path, content):
    path = a_key(tmp_path, content)
    with pytest.raises(SigningKeyError, match=str(path)) as error:
        open_signing_key(path, path)
    assert "secret bytes" not in str(error.value)
    assert path.read_bytes() == content


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    other = a_key(tmp_path / "other", b"secret bytes")
    shared = a_key(tmp_path / "shared", pem(Ed25519PrivateKey.generate()), 0o640)
    pin_messages(
        {
            "it is no key": lambda: open_signing_key(other, other),
            "others may read it": lambda: open_signing_key(shared, shared),
            "it is a folder": lambda: open_signing_key(tmp_path, tmp_path),
            "it is below a file": lambda: open_signing_key(other / "x" / "y", None),
        }
    )
