"""However a process ends, except by kill -9 and `os._exit`, each recorded event is stored exactly once.

Events stay in the buffer until something asks for them, so what is stored was saved at the end.
"""

import signal
import sqlite3
import subprocess
import time

import pytest

from deniable.producers.pipeline.recording import process_end
from tests.support.needed import but_for
from tests.support.processes import wait_until
from tests.support.producers.recording.scripts import command, each_once, left_in, run

pytestmark = pytest.mark.all

SLOW = "recorder.INTERVAL_SECONDS = 30.0\n"
BEGIN = SLOW + "producer = Producer(config)\n"
TERMINATE = "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)\n"

ENDS = {
    "end of script": (BEGIN + "record(300)", 0),
    "SIGTERM": (BEGIN + "record(300)\n" + TERMINATE, -signal.SIGTERM),
    "SIGTERM, own handler set later": (
        BEGIN + "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\nrecord(300)\n" + TERMINATE,
        3,
    ),
    "SIGTERM, own handler set before": (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n" + BEGIN + "record(300)\n" + TERMINATE,
        3,
    ),
    "SIGTERM, own handler that records and calls ours": (
        BEGIN
        + """
ours = signal.getsignal(signal.SIGTERM)
def handle(*given):
    record(1, 299)
    ours(*given)
signal.signal(signal.SIGTERM, handle)
record(299)
"""
        + TERMINATE,
        -signal.SIGTERM,
    ),
    "sys.exit": (BEGIN + "record(300)\nsys.exit(4)", 4),
    "uncaught exception": (BEGIN + "record(300)\nraise KeyError", 1),
    "exception in another thread": (
        BEGIN
        + """
def work():
    record(300)
    raise KeyError
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
        0,
    ),
    "thread that outlives the script": (
        BEGIN
        + """
def work():
    time.sleep(0.3)
    record(300)
threading.Thread(target=work).start()
""",
        0,
    ),
    "KeyboardInterrupt": (
        BEGIN + "record(300)\nos.kill(os.getpid(), signal.SIGINT); time.sleep(60)",
        -signal.SIGINT,
    ),
    "exit handler that records": (BEGIN + "atexit.register(record, 1, 299)\nrecord(299)", 0),
    "two producers of a folder": (
        BEGIN
        + "second = Producer(config)\nrecord(100)\nrecord(100, 100, second)\nrecord(100, 200)\n"
        + TERMINATE,
        -signal.SIGTERM,
    ),
    "producer without a reference": (
        SLOW + "def work():\n    record(300, 0, Producer(config))\nwork()\ngc.collect()\n",
        0,
    ),
    "SIGTERM after close of another producer": (
        BEGIN
        + """
from dataclasses import replace
other = Producer(replace(config, data_dir=folder / "other"))
other.close()
record(300)
"""
        + TERMINATE,
        -signal.SIGTERM,
    ),
    "SIGTERM during flush": (
        BEGIN
        + """
record(150)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
threading.Timer(0.2, record, (150, 150)).start()
producer.flush(60)
""",
        -signal.SIGTERM,
    ),
    "SIGTERM during close": (
        BEGIN
        + """
record(300)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
producer.close(60)
""",
        -signal.SIGTERM,
    ),
    "error within the context manager": (
        SLOW
        + """
with Producer(config) as producer:
    close = producer.close
    producer.close = lambda: close(0.1)
    record(300)
    raise KeyError
""",
        1,
    ),
}


#: Those of which test_process_ends in producers/recipes has one, and variants of others.
NIGHTLY = {
    "end of script",
    "SIGTERM",
    "SIGTERM, own handler set before",
    "sys.exit",
    "uncaught exception",
    "KeyboardInterrupt",
    "SIGTERM after close of another producer",
    "exception in another thread",
}


@pytest.mark.parametrize("end", but_for(ENDS.keys() - NIGHTLY, ENDS, pytest.mark.nightly))
def test_nothing_is_lost_or_doubled_at(tmp_path, make, kafka, end):
    script, status = ENDS[end]
    done = run(script, tmp_path)
    assert done.returncode == status, done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(300)


def test_immediate_exit_loses_only_what_was_not_taken(tmp_path, make, kafka):
    """`os._exit` runs nothing; documented in `Producer.record` like kill -9."""
    done = run(BEGIN + "record(100)\nproducer.save(30)\nrecord(200, 100)\nos._exit(5)", tmp_path)
    assert done.returncode == 5
    assert left_in(tmp_path, make, kafka) == each_once(100)


def test_ignored_signal_stays_ignored(tmp_path, make, kafka):
    script = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + BEGIN
    done = run(script + "os.kill(os.getpid(), signal.SIGTERM)\nrecord(10)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert left_in(tmp_path, make, kafka) == each_once(10)


def terminated(script, folder, then=lambda: None):
    """Run a script until it prints a line; end it by SIGTERM; return its status and seconds to its end."""
    process = subprocess.Popen(command(script, folder), stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == "recorded\n"
        began = time.monotonic()
        process.terminate()
        then()
        return process.wait(60), time.monotonic() - began


WAITS = "print('recorded', flush=True)\nwhile True: time.sleep(0.05)\n"


def test_kafka_that_is_away_does_not_delay_the_end(tmp_path, make, kafka):
    script = (
        "from kafka.errors import KafkaTimeoutError\n"
        "from deniable.producers.pipeline.recording import process_end\n"
        "process_end.SAVE_SECONDS = 100.0\n"
        + BEGIN
        + "kafka.refuses = KafkaTimeoutError()\nrecord(300)\n"
        + WAITS
    )
    status, seconds = terminated(script, tmp_path)
    assert status == -signal.SIGTERM
    assert seconds < 60  # not the 100 s that saving may take
    assert left_in(tmp_path, make, kafka) == each_once(300)


def locked(folder):
    held = sqlite3.connect(folder / "producer.sqlite", isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    return held


LOCKED = (
    "from deniable.producers.pipeline.recording import process_end\n"
    "import sys\n"
    "process_end.SAVE_SECONDS = float(sys.argv[3])\n"
    + BEGIN
    + """
held = sqlite3.connect(folder / "producer.sqlite", isolation_level=None)
print("ready", flush=True)
sys.stdin.readline()
record(300)
"""
    + WAITS
)


@pytest.mark.parametrize(("seconds", "kept"), [(100.0, 300), (0.5, 0)])
def test_end_waits_some_seconds_for_a_store_locked_by_another_process(tmp_path, make, kafka, seconds, kept):
    """Up to 5 s, since a service manager kills what does not end; then nothing is stored, nor doubled."""
    assert process_end.SAVE_SECONDS == 5.0
    run_locked = [*command(LOCKED, tmp_path), str(seconds)]
    process = subprocess.Popen(run_locked, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout.readline() == "ready\n"
        held = locked(tmp_path)
        process.stdin.write("go on\n")
        process.stdin.flush()
        assert process.stdout.readline() == "recorded\n"
        process.terminate()
        if kept:
            time.sleep(2.0)  # it waits meanwhile
        else:
            process.wait(60)
        held.execute("ROLLBACK")
        held.close()
        assert process.wait(60) == -signal.SIGTERM
    assert left_in(tmp_path, make, kafka) == each_once(kept)


BUSY = """
producer = Producer(config)
print("recorded", flush=True)
for number in range(10**9):
    producer.record("latency", 5, None, 60 * number)
    os.write(2, b"%d\\n" % number)
    if number % 20 == 0:
        time.sleep(0.001)
"""


def test_signal_at_a_random_moment_loses_no_event_whose_call_returned(tmp_path, make, kafka):
    for number in range(5):
        folder, shown = tmp_path / str(number), tmp_path / f"{number}.txt"
        with shown.open("wb") as file:
            process = subprocess.Popen(command(BUSY, folder), stdout=subprocess.PIPE, stderr=file, text=True)
            with process:
                assert process.stdout.readline() == "recorded\n"
                assert wait_until(lambda shown=shown: shown.read_bytes().count(b"\n") > 50)
                time.sleep(0.06 * number)
                process.terminate()
                assert process.wait(60) == -signal.SIGTERM
        returned = sum(line.isdigit() for line in shown.read_text().splitlines())
        kafka.sent.clear()
        assert left_in(folder, make, kafka) in (each_once(returned), each_once(returned + 1))
