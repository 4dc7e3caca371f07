"""The signing key's file: created once, never replaced, refused if it is not one."""

import stat
from base64 import b64decode

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from edge.signing_key import SigningKeyError, open_signing_key


def test_default_key_is_created_once(tmp_path, caplog):
    path = tmp_path / ".deniable" / "edge-key.pem"
    key = open_signing_key(path, None)
    assert len(b64decode(key.public_key)) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"created a new signing key, {path}: back it up" in caplog.text
    caplog.clear()
    assert open_signing_key(path, None).public_key == key.public_key
    assert caplog.text == ""
    assert [each.name for each in path.parent.iterdir()] == ["edge-key.pem"]
    assert repr(key) == "SigningKey(…)"


def test_configured_key_is_never_created(tmp_path):
    given = tmp_path / "key.pem"
    with pytest.raises(
        SigningKeyError, match=r"it is missing, and a configured one is never created"
    ) as error:
        open_signing_key(tmp_path / "default.pem", given)
    assert "openssl genpkey" in str(error.value)
    assert list(tmp_path.iterdir()) == []


def pem(key, encryption=None):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


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
    path = tmp_path / "key.pem"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(
        SigningKeyError, match=r"must be an Ed25519 private key in PEM, not encrypted"
    ) as error:
        open_signing_key(path, path)
    assert "secret bytes" not in str(error.value)
    assert path.read_bytes() == content


def test_open_files_and_folders_are_refused(tmp_path):
    path = tmp_path / "key.pem"
    path.write_bytes(pem(Ed25519PrivateKey.generate()))
    path.chmod(0o640)
    with pytest.raises(SigningKeyError, match=r"mode must be 0600 or stricter, got 0640; run: chmod 600"):
        open_signing_key(path, path)
    with pytest.raises(SigningKeyError, match=r"must be a regular file|Is a directory"):
        open_signing_key(tmp_path, tmp_path)
    with pytest.raises(SigningKeyError, match=r"Not a directory"):
        open_signing_key(path / "x" / "y", None)
