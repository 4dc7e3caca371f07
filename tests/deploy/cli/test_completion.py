"""Completion of commands and options in bash, as docs/commands.md says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import REPOSITORY

(LINE,) = re.findall(
    r"^    (eval .*_DENIABLE_COMPLETE.*)$", (REPOSITORY / "docs" / "commands.md").read_text(), re.MULTILINE
)


@pytest.mark.all
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("deniable agg", {"aggregate"}),
        pytest.param("deniable rollup --la", {"--last"}, marks=pytest.mark.all),
        pytest.param("deniable topics cr", {"create"}, marks=pytest.mark.all),
    ],
)
def test_bash_completes(typed: str, completed: set[str]) -> None:
    words = typed.split()
    script = (
        f"{LINE}; COMP_WORDS=({typed}); COMP_CWORD={len(words) - 1}; "
        '_deniable_completion deniable; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == completed, done.stderr
