"""Folders: held by one process, temporary ones gone with it or swept by the next."""

from pathlib import Path

import pytest

from deploy.broker.locked_folder import FolderError, HeldFolder, lock


def test_folder_is_locked_by_one_process(tmp_path: Path) -> None:
    first = HeldFolder(tmp_path)
    message = f"{tmp_path} is in use by another process; choose another folder"
    with pytest.raises(FolderError, match=f"^{message}$"):
        HeldFolder(tmp_path)
    first.release()
    HeldFolder(tmp_path).release()
    assert tmp_path.is_dir()


def test_uncreatable_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match=r"file/data cannot be used: Not a directory$"):
        HeldFolder(tmp_path / "file" / "data")


def test_unwritable_cache_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(FolderError, match=r"file/deniable/temporary cannot be used: Not a directory$"):
        HeldFolder()


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
    with lock(tmp_path / "new"), pytest.raises(FolderError, match="is in use by another process"):
        lock(tmp_path / "new", wait=False)
    lock(tmp_path / "new", wait=False).close()
