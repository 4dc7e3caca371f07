"""Where the peers are installed, and how failed installations are reported."""

import sys
import venv
from importlib.metadata import version
from pathlib import Path

import pytest

from bench.comparison.timing import peer_environment
from bench.sections import ROOT


@pytest.fixture(name="empty")
def _empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty environment, created like that of the peers."""
    venv.create(tmp_path, with_pip=False)
    monkeypatch.setattr(peer_environment, "FOLDER", tmp_path)
    monkeypatch.setattr(peer_environment, "PYTHON", tmp_path / "bin" / "python")


@pytest.mark.slow
@pytest.mark.usefixtures("empty")
def test_pip_ignores_packages_of_our_environment() -> None:
    """Our pip runs there: it must see their packages, not ours."""
    assert "numpy" in peer_environment._pip("--no-index", "--dry-run", "numpy")
    assert peer_environment.version_of("numpy") == ""


def test_version_comes_from_the_peer_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_environment, "FOLDER", ROOT / ".venv")
    assert peer_environment.version_of("numpy") == version("numpy")


def test_reason_is_one_short_line() -> None:
    """Pip lists all existing versions."""
    shown = "print('much'); print('ERROR: none of ' + '1.0, ' * 400); raise SystemExit(1)"
    reason = peer_environment._run(sys.executable, "-c", shown)
    assert reason.startswith("ERROR: none of 1.0, ")
    assert len(reason) <= peer_environment.MOST_LETTERS
    assert peer_environment._run(sys.executable, "-c", "print('much')") == ""
    assert peer_environment._run(sys.executable, "-c", "raise SystemExit(3)") == "status 3"


@pytest.mark.slow
def test_incomplete_environment_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a peer without hashes, so nothing is downloaded; the folder only looks installed."""

    def pip(*_: str) -> str:
        folder = next(peer_environment.FOLDER.glob("lib/python*/site-packages")) / "peer-1.0.dist-info"
        folder.mkdir(exist_ok=True)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: peer\nVersion: 1.0\n")
        return ""

    def installs() -> bool:
        assert peer_environment.install() == {}
        assert peer_environment.version_of("peer") == "1.0"
        return "installing the peers" in capsys.readouterr().err

    (tmp_path / "peers.lock").write_text("peer==1.0\n")
    monkeypatch.setattr(peer_environment, "LOCK", tmp_path / "peers.lock")
    monkeypatch.setattr(peer_environment, "FOLDER", tmp_path / "peers")
    monkeypatch.setattr(peer_environment, "PYTHON", tmp_path / "peers" / "bin" / "python")
    monkeypatch.setattr(peer_environment, "STATE", tmp_path / "peers" / "installed.json")
    monkeypatch.setattr(peer_environment, "_pip", pip)
    assert [installs(), installs()] == [True, False]
    (metadata,) = tmp_path.glob("peers/lib/python*/site-packages/peer-*/METADATA")
    metadata.unlink()
    metadata.parent.rmdir()
    assert [installs(), installs()] == [True, False]
    for broken in ("{bad", "[]", '{"lock": 1}'):
        peer_environment.STATE.write_text(broken)
        assert [installs(), installs()] == [True, False]
    peer_environment.PYTHON.unlink()
    assert [installs(), installs()] == [True, False]
