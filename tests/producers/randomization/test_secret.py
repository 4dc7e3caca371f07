"""The secret file is created once, private, never replaced and never shown."""

import copy
import os
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b

import pytest

from producers.randomization import secret
from producers.randomization.secret import Secret, SecretError, load_secret, read_secret, secret_of
from tests.support.brokers.log_lines import messages


def fingerprint(loaded):
    return loaded.function(b"test", 16).hexdigest()


def test_missing_secret_is_created_and_kept(tmp_path):
    path = tmp_path / "new" / "data" / "secret"
    first = load_secret(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_size == 32
    assert [entry.name for entry in path.parent.iterdir()] == ["secret"]
    assert fingerprint(load_secret(path)) == fingerprint(first)
    assert fingerprint(load_secret(tmp_path / "another")) != fingerprint(first)


def test_new_secret_is_logged_once_without_its_bytes(tmp_path, caplog):
    path = tmp_path / "secret"
    load_secret(path)
    load_secret(path)
    assert messages(caplog) == [
        f"created a new secret, {path}: back it up; losing it would redraw every permanent response"
    ]


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


@pytest.mark.parametrize(("size", "got"), [(0, "0"), (31, "31"), (4097, "more"), (10**6, "more")])
def test_refuses_secret_of_wrong_size(tmp_path, size, got):
    path = tmp_path / "secret"
    path.write_bytes(b"s" * size)
    path.chmod(0o600)
    with pytest.raises(
        SecretError, match=rf"secret: must have 32 to 4096 bytes, got {got}; restore it from a copy"
    ):
        load_secret(path)
    assert path.read_bytes() == b"s" * size


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
def test_secret_readable_by_others_is_refused(tmp_path, mode):
    path = tmp_path / "secret"
    path.write_bytes(b"s" * 32)
    path.chmod(mode)
    with pytest.raises(
        SecretError, match=rf"mode must be 0600 or stricter, got 0{mode:o}; run: chmod 600 .*secret$"
    ):
        load_secret(path)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_private_secret_is_accepted(tmp_path, mode):
    path = tmp_path / "secret"
    path.write_bytes(b"s" * 64)
    path.chmod(mode)
    assert fingerprint(load_secret(path)) == fingerprint(Secret(b"s" * 64))


def test_unreadable_secret_is_reported_with_file_and_cause(tmp_path):
    with pytest.raises(SecretError, match=rf"^secret file {tmp_path}: Is a directory$"):
        load_secret(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SecretError, match=r"file/secret: Not a directory$"):
        load_secret(tmp_path / "file" / "secret")


def test_full_disk_leaves_no_file(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(secret.os, "fsync", full)
    with pytest.raises(SecretError, match=r"secret: No space left on device$"):
        load_secret(tmp_path / "secret")
    assert list(tmp_path.iterdir()) == []


def test_read_only_secret_is_not_created(tmp_path):
    with pytest.raises(SecretError, match=r"data/secret: No such file or directory$"):
        read_secret(tmp_path / "data" / "secret")
    assert list(tmp_path.iterdir()) == []


def test_key_of_the_wrong_size_is_refused():
    with pytest.raises(SecretError, match=r"^a secret must have 32 to 4096 bytes, got 16$"):
        Secret(bytes(16))
    with pytest.raises(SecretError, match=r"^a secret must have 32 to 4096 bytes, got more$"):
        Secret(bytes(4097))


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
    with pytest.raises(
        SecretError, match=r"secret: it is missing, but .* was used with one; restore it from a copy"
    ):
        secret_of(tmp_path)


def test_configured_secret_is_never_created(tmp_path):
    given = tmp_path / "vault" / "secret"
    with pytest.raises(SecretError) as caught:
        secret_of(tmp_path / "data", given)
    assert str(caught.value) == (
        f"secret file {given}: it is missing, and a configured one is never created; copy there the one that "
        f"all hosts share, or create the first: (umask 077; head -c 32 /dev/urandom > {given})"
    )
    loaded = load_secret(given)
    assert fingerprint(secret_of(tmp_path / "data", given)) == fingerprint(loaded)


def test_refuses_a_pipe_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "secret", 0o600)
    with pytest.raises(SecretError, match=r"secret: must be a regular file$"):
        load_secret(tmp_path / "secret")


def test_folder_writable_by_others_is_reported(tmp_path, caplog):
    secret_of(tmp_path / "data")
    assert "others may" not in caplog.text
    (tmp_path / "data").chmod(0o777)
    secret_of(tmp_path / "data")
    assert f"other users may replace files in {tmp_path}/data; run: chmod go-w {tmp_path}/data" in caplog.text
