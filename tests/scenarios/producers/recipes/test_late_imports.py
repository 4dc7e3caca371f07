"""Threads of a producer import Kafka's client alone, while nobody forks: a child would have half of it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.broker

SCRIPT = """
import sys
import deniable

producer = deniable.open_producer("deniable.yaml")
assert "kafka" not in sys.modules
from deniable.producers.transport.sender import LATE
for name in LATE:
    __import__(name)
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
