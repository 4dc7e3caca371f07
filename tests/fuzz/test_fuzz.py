"""Decoders raise only their declared error: past findings, and a fixed number of fuzzed inputs."""

import json
import os
import re
import resource
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS
from tests.support.needed import missing
from tests.support.paths import REPOSITORY

pytestmark = pytest.mark.slow
ROOT = REPOSITORY
NIGHTLY = 10  # times as many inputs as CI runs
MOST_SECONDS = 800  # on a busy machine; alone, packs take half a minute
DONE = re.compile(r"^Done (\d+) in \d+ second", re.MULTILINE)


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=MOST_SECONDS,
        check=False,
    )


def fuzz(name: str, folder: Path, inputs: int) -> "subprocess.CompletedProcess[str]":
    if find_spec("atheris") is None:
        missing("atheris is not installed: it does not support this Python or system")
    return run("tests.fuzz.engine", name, str(folder), f"-atheris_runs={inputs}", "-seed=1")


def test_seeds_and_past_findings_pass() -> None:
    ended = run("tests.fuzz.replay")
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert [line.partition(":")[0] for line in ended.stdout.splitlines()] == list(TARGETS)


@pytest.mark.all
@pytest.mark.timeout(MOST_SECONDS + 30)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("share", [1, pytest.param(NIGHTLY, id="nightly", marks=pytest.mark.nightly)])
def test_fuzzed_decoder_raises_only_declared_errors(name: str, share: int, tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = fuzz(name, tmp_path, share * TARGETS[name])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    advice = f"keep the input in tests/fuzz/found/{name}"
    assert ended.returncode == 0, f"{advice}\n{(ended.stdout + ended.stderr)[-3000:]}"
    done = DONE.search(ended.stdout + ended.stderr)
    assert done is not None
    assert int(done[1]) == share * TARGETS[name]
    outcomes = json.loads(ended.stdout.splitlines()[-1])
    print(f"\n{name}: {int(done[1]):,} inputs in {seconds:.0f} s of one core {outcomes or ''}")  # noqa: T201
    if name == "packs":
        # An input of 1,000,001 bytes is none that an engine should carry about; test_wire.py has one. A full
        # window, or one too early, takes the engine more inputs than CI runs.
        rare = {"oversized"} if share == NIGHTLY else {"oversized", "window_full", "too_early"}
        assert min(number for outcome, number in outcomes.items() if outcome not in rare) > 20 * share
    if name == "uploads":
        assert {"taken", "malformed", "bad_value", "too_late", "204", "400", "404"} < outcomes.keys()
    if name == "relays":
        assert min(outcomes[each] for each in ("frame", "accepted", "malformed")) > 60 * share
    if name == "http":
        assert {"200", "400", "404", "405"} < outcomes.keys()


def test_fuzzer_finds_a_planted_defect(tmp_path: Path) -> None:
    ended = fuzz("defect", tmp_path, 100_000)
    assert ended.returncode != 0
    assert "IndexError" in ended.stdout + ended.stderr
    assert len(list(tmp_path.glob("crash-*"))) == 1
