"""Ports and folders: in use, closed to us, abandoned."""

import socket
from pathlib import Path

import pytest

from deploy.broker_errors import BrokerError
from deploy.broker_folder import BrokerFolder
from deploy.ports import free_port, require_free


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            BrokerError, match=f"port {port} is in use; give another one, or 0 for a free one"
        ):
            require_free(port)


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_out_of_range_is_refused(port: int) -> None:
    with pytest.raises(BrokerError, match=rf"port must be in \[0, 65535\], 0 for a free one, got {port}"):
        require_free(port)


def test_a_free_port_can_be_listened_on() -> None:
    with socket.create_server(("127.0.0.1", free_port())):
        pass


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    first = BrokerFolder(tmp_path)
    with pytest.raises(BrokerError, match="is in use by another broker; give another data folder"):
        BrokerFolder(tmp_path)
    first.release()
    BrokerFolder(tmp_path).release()
    assert tmp_path.is_dir()


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BrokerError, match="file/data cannot be a data folder: Not a directory"):
        BrokerFolder(tmp_path / "file" / "data")


def test_temporary_folders_go_with_their_holder_or_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    abandoned = tmp_path / "deniable" / "brokers" / "of-a-killed-process"
    (abandoned / "kafka").mkdir(parents=True)
    held = BrokerFolder(None)
    assert not abandoned.exists()
    other = BrokerFolder(None)
    assert held.path.is_dir()
    assert other.path != held.path
    for folder in (held, other):
        folder.release()
        assert not folder.path.exists()
