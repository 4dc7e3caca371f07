"""The storage in a directory, for Node: one process at a time, whatever was killed."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.edge.browser.node import SCRIPTS, node
from tests.support.messages import PinMessages
from tests.support.processes import wait_until

KILLS = 10
ENTRIES = 40


def begin(task, directory, *arguments):
    command = [node(), str(SCRIPTS / "directory.mjs"), task, str(directory), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read(directory):
    """Return the number that is stored, or what the process says instead."""
    with begin("read", directory) as process:
        said, wrong = process.communicate(timeout=30)
    return int(said) if process.returncode == 0 else wrong


@pytest.mark.all
def test_killed_process_leaves_a_whole_state_and_no_owner(tmp_path):
    """Killed by -9 at any moment: what was printed is stored, and the next process goes on from there."""
    directory, least = tmp_path / "state", 0
    for _ in range(KILLS):
        with begin("count", directory) as process:
            for _ in range(20):
                first = int(process.stdout.readline())
                assert first > least
                least = first
            process.send_signal(signal.SIGKILL)
            least = max([least, *map(int, process.stdout.read().split("\n")[:-1])])
        stored = read(directory)
        assert stored in (least, least + 1)  # the last one may be stored and not printed
        least = stored
    assert [each.name for each in directory.iterdir() if each.name.startswith("lock")] == []


@pytest.mark.slow
def test_directory_in_use_is_refused(tmp_path, pin_messages: PinMessages) -> None:
    directory = tmp_path / "state"
    with begin("count", directory) as process:
        process.stdout.readline()
        said = read(directory)
        process.send_signal(signal.SIGKILL)
    error = re.search(r"^Error: .*", said, re.MULTILINE)[0].replace(str(process.pid), "PID")
    pin_messages({"another process has it": lambda: error})


@pytest.mark.slow
def test_processes_never_have_it_together(tmp_path):
    """Three processes, after one that was killed: each enters many times, and none meets another."""
    directory = tmp_path / "state"
    with begin("count", directory) as killed:
        killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
    processes = [begin("enter", directory, ENTRIES) for _ in range(3)]
    try:
        assert wait_until(lambda: all(each.poll() is not None for each in processes), 120)
        assert [each.stderr.read() for each in processes] == ["", "", ""]
    finally:
        for each in processes:
            each.kill()
            each.communicate()
    assert not Path(f"{directory}.inside").exists()
