"""Java and Maven: found, too old, missing, failing. The tools here are small scripts in their place."""

import os
from pathlib import Path

import pytest

from deniable.deploy.broker import jars as broker_jars
from deniable.deploy.broker.errors import BrokerError
from deniable.deploy.broker.jars import POM, fetch_jars, find_java
from tests.support.messages import PinMessages

# Makes the folder that it is asked to fill, and counts its runs.
FILL = """
for word; do
    case $word in -DoutputDirectory=*) mkdir -p "${word#*=}" && echo x >> "$0.runs" ;; esac
done
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of PATH; the cache is empty, and the shell is found by its full name."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mkdir").symlink_to("/bin/mkdir")
    return tmp_path / "bin"


def write_tool(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["17.0.15", "21", "25-ea"])
def test_java_is_found(tools: Path, version: str) -> None:
    java = write_tool(tools / "java", f"echo 'openjdk version \"{version}\"' >&2")
    assert find_java() == str(java)


def test_java_home_wins(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tool(tools / "java", "echo 'openjdk version \"17\"' >&2")
    java = write_tool(tmp_path / "home" / "bin" / "java", "echo 'openjdk version \"21\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert find_java() == str(java)


def test_messages_of_java(tools: Path, pin_messages: PinMessages) -> None:
    def find(printed: str | None) -> str:
        if printed is not None:
            write_tool(tools / "java", f"echo '{printed}' >&2")
        return find_java()

    pin_messages(
        {
            "no Java": lambda: find(None),
            "Java 11": lambda: find('openjdk version "11.0.2"'),
            "Java 8": lambda: find('java version "1.8.0_292"'),
            "a program of another kind": lambda: find("what?"),
        }
    )


def test_maven_runs_once(tools: Path) -> None:
    maven = write_tool(tools / "mvn", FILL)
    libs = fetch_jars()
    assert libs.is_dir()
    assert fetch_jars() == libs
    assert Path(f"{maven}.runs").read_text() == "x\n"
    assert sorted(os.listdir(libs.parent)) == sorted(["lock", libs.name])


def test_changed_jars_are_fetched_again(tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tool(tools / "mvn", FILL)
    before = fetch_jars()
    changed = tmp_path / "pom.xml"
    changed.write_text(POM.read_text().replace("2.25.3", "2.25.4"))
    monkeypatch.setattr(broker_jars, "POM", changed)
    assert fetch_jars() != before


def test_maven_that_fails_leaves_nothing_and_is_tried_again(tools: Path) -> None:
    write_tool(tools / "mvn", "echo '[ERROR] no network'; exit 1")
    with pytest.raises(BrokerError):
        fetch_jars()
    write_tool(tools / "mvn", FILL)
    assert fetch_jars().is_dir()


@pytest.mark.slow
def test_messages_of_maven(tools: Path, pin_messages: PinMessages) -> None:
    def fetch(script: str | None) -> None:
        if script is not None:
            write_tool(tools / "mvn", script)
        fetch_jars(maven_seconds=1)

    pin_messages(
        {
            "no Maven": lambda: fetch(None),
            "Maven fails": lambda: fetch("echo '[ERROR] no network'; exit 1"),
            "Maven hangs": lambda: fetch("echo waiting; exec /bin/sleep 600"),
        }
    )
