"""The secret file is created once, private, never replaced and never shown."""

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from pathlib import Path

import pytest

from deniable.protocol.secrets import secret
from deniable.protocol.secrets.secret import Secret, SecretError, load_secret, read_secret, secret_of
from tests.support.brokers.log_lines import messages
from tests.support.messages import PinMessages


def fingerprint(loaded):
    return loaded.function(b"test", 16).hexdigest()


def a_secret(folder: Path, content: bytes = b"s" * 32, mode: int = 0o600) -> Path:
    path = folder / "secret"
    folder.mkdir(exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_missing_secret_is_created_and_kept(tmp_path):
    path = tmp_path / "new" / "data" / "secret"
    first = load_secret(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_size == 32
    assert [entry.name for entry in path.parent.iterdir()] == ["secret"]
    assert fingerprint(load_secret(path)) == fingerprint(first)
    assert fingerprint(load_secret(tmp_path / "another")) != fingerprint(first)


def test_new_secret_is_logged_once_without_its_bytes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pin_messages: PinMessages
) -> None:
    path = tmp_path / "secret"
    load_secret(path)
    load_secret(path)
    (shown,) = messages(caplog)
    pin_messages({"none was there": lambda: shown})


def test_simultaneous_starts_share_one_secret(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        fingerprints = set(pool.map(lambda _: fingerprint(load_secret(tmp_path / "secret")), range(64)))
    assert len(fingerprints) == 1


def test_losing_the_race_reads_the_winning_secret(tmp_path, monkeypatch, caplog):
    path = tmp_path / "secret"
    link = os.link

    def late(source, target):
        path.write_bytes(b"w" * 32)
        path.chmod(0o600)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    assert fingerprint(load_secret(path)) == fingerprint(Secret(b"w" * 32))
    assert messages(caplog) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("size", [0, 31, 4097, 10**6])
def test_secret_of_wrong_size_is_refused_and_unchanged(tmp_path, size):
    path = a_secret(tmp_path, b"s" * size)
    with pytest.raises(SecretError):
        load_secret(path)
    assert path.read_bytes() == b"s" * size


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    (tmp_path / "file").touch()
    a_secret(tmp_path / "used")
    (tmp_path / "used" / "producer.sqlite").touch()
    (tmp_path / "used" / "secret").unlink()
    os.mkfifo(tmp_path / "pipe", 0o600)
    modes = {each: a_secret(tmp_path / f"{each:o}", mode=each) for each in (0o644, 0o640, 0o602)}
    configured = tmp_path / "vault" / "secret"
    pin_messages(
        {f"mode is 0{mode:o}": partial(load_secret, path) for mode, path in modes.items()}
        | {
            f"the file has {size} bytes": partial(load_secret, a_secret(tmp_path / str(size), b"s" * size))
            for size in (0, 31, 4097)
        }
        | {f"the key has {size} bytes": partial(Secret, bytes(size)) for size in (16, 4097)}
        | {
            "it is a folder": lambda: load_secret(tmp_path),
            "its folder is a file": lambda: load_secret(tmp_path / "file" / "secret"),
            "a producer's folder is a file": lambda: secret_of(tmp_path / "file" / "data"),
            "it is a pipe": lambda: load_secret(tmp_path / "pipe"),
            "none is there to read": lambda: read_secret(tmp_path / "data" / "secret"),
            "none is there, but a store": lambda: secret_of(tmp_path / "used"),
            "the configured one is missing": lambda: secret_of(tmp_path / "data", configured),
        }
    )


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_private_secret_is_accepted(tmp_path, mode):
    assert fingerprint(load_secret(a_secret(tmp_path, b"s" * 64, mode))) == fingerprint(Secret(b"s" * 64))


@pytest.mark.parametrize("mode", [0o640, 0o620, 0o610, 0o604, 0o602, 0o601])
def test_secret_that_others_may_use_is_refused(tmp_path, mode):
    with pytest.raises(SecretError):
        load_secret(a_secret(tmp_path, mode=mode))


def test_new_secret_is_on_disk_before_its_name_and_its_name_before_it_is_used(tmp_path, monkeypatch):
    path, synced, fsync = tmp_path / "secret", [], os.fsync

    def recorded(descriptor):
        synced.append((os.fstat(descriptor).st_ino, path.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    load_secret(path)
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_full_disk_leaves_no_file(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(secret.os, "fsync", full)
    with pytest.raises(SecretError, match="secret"):
        load_secret(tmp_path / "secret")
    assert list(tmp_path.iterdir()) == []


def test_read_only_secret_is_not_created(tmp_path):
    with pytest.raises(SecretError):
        read_secret(tmp_path / "data" / "secret")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("size", [32, 64])
def test_short_key_is_used_unchanged(size):
    key = bytes(range(size))
    expected = blake2b(key=key, person=b"test", digest_size=16).hexdigest()
    assert Secret(key).function(b"test", 16).hexdigest() == expected


@pytest.mark.parametrize("size", [65, 128, 4096])
def test_every_byte_of_a_longer_key_counts(size):
    key = bytes(size)
    fingerprints = {fingerprint(Secret(key)), fingerprint(Secret(key[:-1]))}
    fingerprints |= {
        fingerprint(Secret(key[:place] + b"x" + key[place + 1 :])) for place in (0, 63, size - 1)
    }
    assert len(fingerprints) == 5


def test_hash_of_long_keys_is_pinned():
    """Another hash would redraw every permanent response."""
    key = blake2b(bytes(100), person=b"deniable-secret").digest()
    assert fingerprint(Secret(bytes(100))) == fingerprint(Secret(key))


def test_key_is_not_shown():
    key = b"correct horse battery staple 123"
    assert repr(Secret(key)) == str(Secret(key)) == "Secret(…)"
    assert not hasattr(Secret(key), "__dict__")


def test_functions_of_different_purposes_differ():
    secret = Secret(bytes(32))
    assert (
        secret.function(b"one", 16).digest() == blake2b(key=bytes(32), person=b"one", digest_size=16).digest()
    )
    assert secret.function(b"one", 16).digest() != secret.function(b"two", 16).digest()
    assert copy.copy(secret).function(b"one", 16).digest() == secret.function(b"one", 16).digest()


def test_used_folder_gets_no_other_secret(tmp_path):
    first = fingerprint(secret_of(tmp_path))
    (tmp_path / "producer.sqlite").touch()
    assert fingerprint(secret_of(tmp_path)) == first
    (tmp_path / "secret").unlink()
    with pytest.raises(SecretError):
        secret_of(tmp_path)


def test_configured_secret_is_never_created(tmp_path):
    given = tmp_path / "vault" / "secret"
    with pytest.raises(SecretError):
        secret_of(tmp_path / "data", given)
    assert not given.parent.exists()
    loaded = load_secret(given)
    assert fingerprint(secret_of(tmp_path / "data", given)) == fingerprint(loaded)


def test_folder_writable_by_others_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, pin_messages: PinMessages
) -> None:
    secret_of(tmp_path / "data")
    caplog.clear()
    secret_of(tmp_path / "data")
    assert messages(caplog) == []
    (tmp_path / "data").chmod(0o777)
    secret_of(tmp_path / "data")
    (shown,) = messages(caplog)
    pin_messages({"others may write to the folder": lambda: shown})
