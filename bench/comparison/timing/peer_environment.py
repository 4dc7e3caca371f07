"""The virtual environment of the peers, `.peers`, built from `bench/peers.lock`."""

import fcntl
import hashlib
import json
import os
import re
import sys
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import shorten
from typing import Any

import click

from bench.sections import ROOT
from deniable.deploy.broker.child_processes import spawn, stop

FOLDER = ROOT / ".peers"
PYTHON = FOLDER / "bin" / "python"
LOCK = ROOT / "bench" / "peers.lock"
WANTED = ROOT / "bench" / "peers.in"
STATE = FOLDER / "installed.json"
PINNED = re.compile(r"([\w.-]+)==")
MOST_LETTERS = 200  # of a reason; pip may list all versions of a package


def install() -> dict[str, str]:
    """Build the environment unless it is complete; return and print why a peer failed to install.

    If installing all peers at once fails, they are installed one by one, with the versions of the lock but
    without its hashes, because pip would require hashes of packages that a single peer does not need. Failed
    peers are tried again in each run. A file lock serializes concurrent runs.
    """
    with LOCK.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        digest = hashlib.sha256(lock.read()).hexdigest()
        found = _state()
        if (found.get("lock"), found.get("installed")) == (digest, _installed()):
            failed = _one_by_one(list(found["failed"]))
        else:
            click.echo("installing the peers into .peers", err=True)
            # Without pip: ensurepip runs in a grandchild, which would survive a kill.
            why = _run(sys.executable, "-m", "venv", "--clear", "--without-pip", str(FOLDER))
            if why:
                raise click.ClickException(f"{FOLDER} could not be made: {why}; remove it, and try again")
            together = _pip("--require-hashes", "--requirement", str(LOCK))
            failed = _one_by_one(peers()) if together else {}
        state = {"lock": digest, "failed": failed, "installed": _installed()}
        STATE.write_text(json.dumps(state), encoding="utf-8")
    for peer, why in failed.items():
        click.echo(f"{peer} could not be installed, and is left out: {why}", err=True)
    return failed


def _state() -> dict[str, Any]:
    """Return the state that the last run saved, or an empty one if it is unusable."""
    try:
        found = json.loads(STATE.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    usable = isinstance(found, dict) and isinstance(found.get("failed"), dict) and os.access(PYTHON, os.X_OK)
    return found if usable else {}


def _folders() -> list[str]:
    return [str(each) for each in FOLDER.glob("lib/python*/site-packages")]


def _installed() -> list[str]:
    return sorted(f"{each.name}=={each.version}" for each in distributions(path=_folders()))


def peers() -> list[str]:
    """Return the required peers, one requirement each."""
    lines = (line.partition("#")[0].strip() for line in WANTED.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def version_of(name: str) -> str:
    """Return the version of a distribution in the environment, or "" if it is not installed."""
    return next((each.version for each in distributions(name=name, path=_folders())), "")


def _one_by_one(wanted: list[str]) -> dict[str, str]:
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    pinned = [line.removesuffix("\\").strip() for line in lines if PINNED.match(line)]
    failed: dict[str, str] = {}
    for peer in wanted:
        name = peer.partition("==")[0]
        versions = FOLDER / "versions.txt"
        others = [line for line in pinned if line.partition("==")[0] != name]
        versions.write_text("".join(f"{line}\n" for line in others), encoding="utf-8")
        if why := _pip("--constraint", str(versions), peer):
            failed[peer] = why
    return failed


def _pip(*arguments: str) -> str:
    """Run our pip for the peers' Python; return the error in one line, or ""."""
    ours = find_spec("pip")
    if ours is None or ours.origin is None:
        raise click.ClickException("there is no pip to install peers with; python -m ensurepip adds it")
    runner = Path(ours.origin).with_name("__pip-runner__.py")  # pip for another Python, and nothing else
    if not runner.exists():
        raise click.ClickException("pip is too old to install peers with: 22.3 is needed")
    return _run(str(PYTHON), str(runner), "install", "--quiet", "--disable-pip-version-check", *arguments)


def _run(*command: str) -> str:
    """Run a command that is killed with this process; return its error in one line, or ""."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        child = spawn(command, log)
        try:
            status = child.wait()
        finally:
            stop([child])
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    if status == 0:
        return ""
    reason = next(
        (line for line in lines if line.startswith("ERROR")), lines[-1] if lines else f"status {status}"
    )
    return shorten(reason, MOST_LETTERS)
