"""Each lane has one owner, and is free again however that owner ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.producers.storage.lane_locks import claim_lane, try_lane
from deniable.producers.storage.store import StoreError
from tests.support.messages import PinMessages

HOLDER = (
    "import sys, time; from pathlib import Path\n"
    "from deniable.producers.storage.lane_locks import claim_lane\n"
    "lane = claim_lane(Path(sys.argv[1])); print(lane.number, flush=True); time.sleep(60)"
)


def test_lowest_free_lane_is_claimed(tmp_path):
    first, second, third = (claim_lane(tmp_path) for _ in range(3))
    assert [lane.number for lane in (first, second, third)] == [0, 1, 2]
    assert try_lane(tmp_path, 1) is None
    second.release()
    second.release()
    again = claim_lane(tmp_path)
    assert again.number == 1
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_killed_process_frees_its_lane(tmp_path):
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "0\n"
        assert claim_lane(tmp_path).number == 1
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert claim_lane(tmp_path).number == 0


def test_forked_child_does_not_hold_the_lane(tmp_path):
    lane = claim_lane(tmp_path)
    begun, ended = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(begun[1], b"!")
        os.read(ended[0], 1)
        os._exit(0)
    os.read(begun[0], 1)
    lane.release()
    again = claim_lane(tmp_path)
    os.write(ended[1], b"!")
    os.waitpid(child, 0)
    for descriptor in (*begun, *ended):
        os.close(descriptor)
    assert again.number == 0


def test_messages(tmp_path: Path, pin_messages: PinMessages) -> None:
    (tmp_path / "lane-0.lock").mkdir()
    pin_messages({"the lock is a folder": lambda: claim_lane(tmp_path)})


def test_file_system_without_locks_is_reported(tmp_path, monkeypatch):
    def refuse(descriptor, operation):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refuse)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(StoreError, match="lane-0"):
        claim_lane(tmp_path)
    assert len(os.listdir("/proc/self/fd")) == before
