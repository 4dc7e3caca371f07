"""Forked children: the parent sends its events once, and a child its own, however it ends."""

import subprocess
import sys
from pathlib import Path

import pytest

from producers.wire import decode
from tests.support.paths import REPOSITORY
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.web.recipes import write_files

pytestmark = pytest.mark.slow

#: Kafka is away all the time; what a process recorded last was not stored when it ends.
BEGIN = """
import multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
import deniable

EVENTS = 50
PRODUCERS = []

def record(number):
    if not PRODUCERS:  # begun by the parent or, after `spawn`, not
        PRODUCERS.append(deniable.open_producer("deniable.yaml"))
    for user in range(EVENTS):
        PRODUCERS[0].record("opened", "home", client=f"user-{number}-{user}")

def before_all():
    PRODUCERS.append(deniable.open_producer("deniable.yaml"))
    record("parent")
"""
ENDS = {
    "fork": ("before_all(); os.fork(); record(os.getpid())", 3),
    "fork-unused": ("before_all(); os.fork()", 1),
    "fork-exit-status": ("before_all(); os.fork() or (record(1), sys.exit(3))", 2),
    "fork-save-and-leave": ("before_all(); os.fork() or (record(1), PRODUCERS[0].save(5), os._exit(0))", 2),
    "process": (
        "before_all(); child = context.Process(target=record, args=(1,)); child.start(); child.join()",
        2,
    ),
    "executor": (
        "with ProcessPoolExecutor(2, mp_context=context) as pool: list(pool.map(record, range(4)))",
        4,
    ),
    "pool": ("with context.Pool(2) as pool: pool.map(record, range(4))", 4),
}


@pytest.mark.parametrize(
    ("how", "method"),
    [
        *((how, "fork") for how in ENDS),
        *(pytest.param(how, "spawn", marks=pytest.mark.all) for how in ENDS if not how.startswith("fork")),
    ],
)
def test_events_of_parent_and_children_are_reported_once(
    how: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, times = ENDS[how]
    monkeypatch.setenv("DENIABLE_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    write_files(tmp_path)
    main = f"if __name__ == '__main__':\n    context = multiprocessing.get_context({method!r})\n    {what}\n"
    (tmp_path / "program.py").write_text(BEGIN + main)
    run([sys.executable, "program.py"], tmp_path)
    assert reports_in(tmp_path, monkeypatch) == times * 50


def run(command: list[str], folder: Path) -> None:
    """Run a program to its end, and that of the children that have its output open."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr


def reports_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let a last producer send what is stored to a fake Kafka; return the number of reports."""
    from deniable import open_producer
    from producers.pipeline import storing_thread

    fake = FakeKafka(acknowledges=True)
    monkeypatch.setattr(storing_thread, "connect", fake.connect)
    with open_producer(folder / "deniable.yaml") as last:
        last.flush()
    packs = [decode(record["value"]) for record in fake.sent]
    assert len({pack.pack_id for pack in packs}) == len(packs)
    return sum(pack.reports for pack in packs)
