"""The peers' environment, `.peers`, made from `bench/peers.lock`; what cannot be installed is named."""

import hashlib
import json
import re
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

    Peers are installed one by one where all together fail, each with the versions of the lock, but without
    its hashes: pip would ask for those of what a single peer does not need.
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
        versions = FOLDER / "versions.txt"
        versions.write_text("".join(f"{line}\n" for line in _pinned()), encoding="utf-8")
        for peer in peers():
            why = _pip("--constraint", str(versions), peer)
            if why:
                failed[peer] = why
    STATE.write_text(json.dumps({"lock": digest, "failed": failed}), encoding="utf-8")
    return failed


def peers() -> list[str]:
    """What is asked for, a requirement each."""
    lines = (line.partition("#")[0].strip() for line in WANTED.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def _pinned() -> list[str]:
    """Requirements of the lock without their hashes."""
    lines = LOCK.read_text(encoding="utf-8").splitlines()
    return [line.removesuffix("\\").strip() for line in lines if re.match(r"[\w.-]+==", line)]


def _pip(*arguments: str) -> str:
    """What went wrong, a line, or nothing."""
    command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        return ""
    lines = ended.stderr.strip().splitlines() or ["pip failed"]
    return next((line for line in lines if line.startswith("ERROR")), lines[-1])
