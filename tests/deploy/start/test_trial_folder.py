"""What `deniable dev --fresh` deletes, and what it leaves."""

from pathlib import Path

import pytest

from deniable.deploy.broker.locked_folder import FolderError, HeldFolder
from deniable.deploy.start.trial_folder import CONTENT, empty, refuse_second
from tests.support.messages import PinMessages


def test_only_what_dev_has_written_is_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pin_messages: PinMessages
) -> None:
    folder = tmp_path / "data"
    (folder / "kafka").mkdir(parents=True)
    for name in ("kafka/log", "worker.log", "broker.log", "server.properties", "mine.txt"):
        (folder / name).touch()
    empty(folder)
    assert {path.name for path in folder.iterdir()} == {"mine.txt", "lock"}
    pin_messages({"the folder is emptied": lambda: capsys.readouterr().err})


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    (folder / CONTENT[0]).symlink_to(elsewhere)
    empty(folder)
    assert (elsewhere / "file").exists()
    assert not (folder / CONTENT[0]).is_symlink()


def test_absent_folder_is_not_created(tmp_path: Path) -> None:
    refuse_second(tmp_path / "none")
    empty(tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_folder_in_use_is_refused(tmp_path: Path, pin_messages: PinMessages) -> None:
    with HeldFolder(tmp_path):
        pin_messages({"a second one begins": lambda: refuse_second(tmp_path)})
        with pytest.raises(FolderError):
            empty(tmp_path)
    refuse_second(tmp_path)


def test_what_cannot_be_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pin_messages: PinMessages
) -> None:
    def refuse(path: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    pin_messages({"a file may not be deleted": lambda: empty(tmp_path)})
