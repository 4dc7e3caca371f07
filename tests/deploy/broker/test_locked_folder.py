"""Folders: held by one process, temporary ones gone with it or swept by the next."""

from pathlib import Path

import pytest

from deniable.deploy.broker.locked_folder import FolderError, HeldFolder, lock
from tests.support.messages import PinMessages


def test_folder_is_locked_by_one_process(tmp_path: Path) -> None:
    first = HeldFolder(tmp_path)
    with pytest.raises(FolderError):
        HeldFolder(tmp_path)
    first.release()
    HeldFolder(tmp_path).release()
    assert tmp_path.is_dir()


def test_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with HeldFolder(tmp_path):
        pin_messages(
            {
                "another process uses the folder": lambda: HeldFolder(tmp_path),
                "a folder in a file": lambda: HeldFolder(tmp_path / "file" / "data"),
                "a cache in a file": HeldFolder,
            }
        )


def test_temporary_folders_are_removed_by_holder_or_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    abandoned = tmp_path / "deniable" / "temporary" / "of-a-killed-process"
    (abandoned / "kafka").mkdir(parents=True)
    with HeldFolder() as held:
        assert not abandoned.exists()
        assert held.stat().st_mode & 0o777 == 0o700
        with HeldFolder() as other:
            assert held.is_dir()
            assert other != held
        assert not other.exists()
        assert held.is_dir()
    assert not held.exists()


def test_a_lock_ends_with_its_file(tmp_path: Path) -> None:
    with lock(tmp_path / "new"), pytest.raises(FolderError):
        lock(tmp_path / "new", wait=False)
    lock(tmp_path / "new", wait=False).close()
