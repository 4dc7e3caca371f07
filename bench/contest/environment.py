"""The peers' environment, `.peers`, made from `bench/peers.lock`; what cannot be installed is named."""

import hashlib
import json
import subprocess
import sys

import click

from bench.contest.contestant import ROOT

FOLDER = ROOT / ".peers"
PYTHON = FOLDER / "bin" / "python"
LOCK = ROOT / "bench" / "peers.lock"
WANTED = ROOT / "bench" / "peers.in"
STATE = FOLDER / "installed.json"


def install() -> dict[str, str]:
    """Make the environment unless it is there; why each peer that is missing could not be installed.

    Peers are installed one by one where all together fail, each with the versions of the lock.
    """
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if STATE.exists():
        state = json.loads(STATE.read_text(encoding="utf-8"))
        if state["lock"] == digest:
            return dict(state["failed"])
    click.echo("installing the peers into .peers", err=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
    failed: dict[str, str] = {}
    if _pip("--require-hashes", "--requirement", str(LOCK)):
        for peer in peers():
            why = _pip("--constraint", str(LOCK), peer)
            if why:
                failed[peer] = why
    STATE.write_text(json.dumps({"lock": digest, "failed": failed}), encoding="utf-8")
    return failed


def peers() -> list[str]:
    """What is asked for, a requirement each."""
    lines = (line.partition("#")[0].strip() for line in WANTED.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _pip(*arguments: str) -> str:
    """The last line of what went wrong, or nothing."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.stderr.strip().rpartition("\n")[2] if ended.returncode else ""
