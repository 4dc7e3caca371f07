"""What was recorded last is stored when a process ends: by itself, by SIGTERM, or as another process's child.

Forked children send their own events, and their parent its own once.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.protocol.wire import decode
from tests.support.needed import but_for
from tests.support.paths import REPOSITORY
from tests.support.producers.fake_kafka import FakeKafka
from tests.support.producers.web.recipes import write_files

pytestmark = pytest.mark.slow

#: Kafka is away all the time; what a process recorded last was not stored when it ends.
BEGIN = """
import multiprocessing, os, signal, sys, threading
from concurrent.futures import ProcessPoolExecutor
import deniable

EVENTS = 50
PRODUCERS = []

def record(number):
    if not PRODUCERS:  # begun by the parent or, after `spawn`, not
        PRODUCERS.append(deniable.open_producer("deniable.yaml"))
    for user in range(EVENTS):
        PRODUCERS[0].record("opened", "home", client=f"user-{number}-{user}")

def import_late():
    from deniable.producers.transport.sender import LATE
    for name in LATE:
        __import__(name)

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
    # Not `with`, which ends workers by SIGTERM: see docs/recording.md.
    "pool": ("pool = context.Pool(2); pool.map(record, range(4)); pool.close(); pool.join()", 4),
}
#: Those that make test runs too.
OFTEN = {"fork", "executor", "last-line", "sigterm", "killed"}


@pytest.mark.parametrize(
    ("how", "method"),
    [
        *(pytest.param(how, "fork", marks=[] if how in OFTEN else [pytest.mark.all]) for how in ENDS),
        pytest.param("process", "spawn", marks=pytest.mark.all),
        *(pytest.param(how, "spawn", marks=pytest.mark.nightly) for how in ("executor", "pool")),
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


#: How the process ends, its exit status, and how many events are stored.
ALONE = {
    "last-line": ("pass", 0, 50),
    "exit": ("sys.exit(3)", 3, 50),
    "uncaught": ("raise KeyError", 1, 50),
    # A thread that executes text meanwhile, as Kafka's modules do when they are imported, makes CPython exit
    # with 1.
    "sigint": ("import_late(); record(1); os.kill(os.getpid(), signal.SIGINT)", -signal.SIGINT, 100),
    "sigterm": ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, 50),
    "sigterm-waiting": (
        # CPython overlooks a signal that comes as it begins to wait, until the next one.
        "[threading.Timer(after, os.kill, (os.getpid(), signal.SIGTERM)).start() for after in (0.001, 20)]; "
        "threading.Event().wait()",
        -signal.SIGTERM,
        50,
    ),
    "saved": ("PRODUCERS[0].save(5); os._exit(0)", 0, 50),
    "own-handler": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); os.kill(os.getpid(), signal.SIGTERM)",
        7,
        50,
    ),
    # The first events are stored; the last ones come in the same millisecond as the end.
    "killed": (
        "PRODUCERS[0].save(5); record(1); os.kill(os.getpid(), signal.SIGKILL)",
        -signal.SIGKILL,
        range(50, 101),
    ),
}


@pytest.mark.parametrize("how", but_for(OFTEN & ALONE.keys(), ALONE, pytest.mark.all))
def test_last_events_are_stored_when_the_process_ends(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, status, stored = ALONE[how]
    monkeypatch.setenv("DENIABLE_KAFKA__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    write_files(tmp_path)
    (tmp_path / "program.py").write_text(f"{BEGIN}\nbefore_all()\n{what}\n")
    run([sys.executable, "program.py"], tmp_path, status)
    found = reports_in(tmp_path, monkeypatch)
    assert found in stored if isinstance(stored, range) else found == stored


def run(command: list[str], folder: Path, status: int = 0) -> None:
    """Run a program to its end, and that of the children that have its output open."""
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == status, ended.stderr
    assert "producers/" not in ended.stderr, ended.stderr


def reports_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Let a last producer send what is stored to a fake Kafka; return the number of reports."""
    from deniable import open_producer
    from deniable.producers.pipeline import storing_thread

    fake = FakeKafka(acknowledges=True)
    monkeypatch.setattr(storing_thread, "connect", fake.connect)
    with open_producer(folder / "deniable.yaml") as last:
        last.flush()
    packs = [decode(record["value"]) for record in fake.sent]
    assert len({pack.pack_id for pack in packs}) == len(packs)
    return sum(pack.reports for pack in packs)
