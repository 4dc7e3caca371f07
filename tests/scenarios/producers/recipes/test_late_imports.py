"""Threads of a producer import nothing: a fork in the middle would leave its child half of a module."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.broker

SCRIPT = """
import sys
import deniable

producer = deniable.open_producer("deniable.yaml")
opened = set(sys.modules)
producer.record("opened", "home", client="user-1")
producer.flush()
print(sorted(set(sys.modules) - opened))
"""


def test_what_threads_need_is_imported_when_a_producer_opens(folder: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout) == (0, "[]\n"), ended.stderr
