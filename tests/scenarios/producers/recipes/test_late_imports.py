"""Threads of a producer import only while nobody forks: a child would have half of the module, for ever."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.broker

SCRIPT = """
import contextlib, sys, threading

class Unguarded:
    names = []

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hooks = sys.modules.get("deniable.producers.concurrency.fork_hooks")
        is_main = threading.current_thread() is threading.main_thread()
        if name == "kafka" if is_main else not hooks._imports:
            cls.names.append(name)

sys.meta_path.insert(0, Unguarded)
import deniable

producer = deniable.open_producer("deniable.yaml")
producer.record("opened", "home", client="user-1")
producer.report("opened", ["home", "help"], clients=["user-2", "user-3"])
with contextlib.suppress(deniable.DeliveryError):  # nobody answers at the edge
    producer.flush(5)
print(sorted(set(Unguarded.names)), "kafka" in sys.modules)
"""


@pytest.mark.parametrize("deliver", ["kafka", "http://localhost:9"])
def test_threads_import_nothing_unguarded(
    folder: Path, monkeypatch: pytest.MonkeyPatch, deliver: str
) -> None:
    """And opening a producer does not import Kafka's client, whose import takes as long as all else."""
    monkeypatch.setenv("DENIABLE_PRODUCER__DELIVER", deliver)
    command = [sys.executable, "-c", SCRIPT]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, f"[] {deliver == 'kafka'}\n"), ended.stderr
