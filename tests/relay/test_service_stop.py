"""A relay ends on Ctrl-C within seconds, whatever goes on, and by a defect; both without a traceback."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import deniable_command, spawn, stop
from tests.support.paths import REPOSITORY
from tests.support.processes import wait_until
from tests.support.relay.rounds import Round

pytestmark = [pytest.mark.broker, pytest.mark.all]

END_SECONDS = 30.0
SESSION_SECONDS = 120.0
BEGIN_SECONDS = 60.0


@pytest.fixture
def turn(broker):
    found = Round(broker, 5)
    yield found
    found.close()


def started(turn, folder, name):
    """Start a relay as users do; return it once it works on a partition, and its log."""
    log = folder / name
    relay = spawn(deniable_command("relay", "--config", str(turn.file)), log)
    turn.relays.append(relay)
    assert wait_until(lambda: "partition opened" in log.read_text(), BEGIN_SECONDS)
    return relay, log


def ended(relay, number=signal.SIGINT):
    """End it; return the status, and how long that took."""
    began = time.monotonic()
    os.kill(relay.pid, number)
    return relay.wait(60), time.monotonic() - began


def test_ctrl_c_does_not_wait_for_a_rebalance(turn, tmp_path):
    """A dead relay keeps the group waiting for its session."""
    first, log = started(turn, tmp_path, "first")
    dead = turn.start(session_seconds=SESSION_SECONDS)
    assert wait_until(lambda: "partition opened" in turn.logs[-1].read_text(), BEGIN_SECONDS)
    turn.send(0.0)  # every partition has begun: once one relay is dead, none begins for its session
    dead.kill()
    dead.wait(60)
    turn.start()
    turn.send(2.0)  # the third one joins
    status, seconds = ended(first)
    assert (status, seconds < END_SECONDS) == (0, True), seconds
    text = log.read_text()
    assert "Traceback" not in text
    assert "never retrieved" not in text


@pytest.mark.nightly
def test_ctrl_c_ends_a_relay_without_kafka(tmp_path):
    with Broker(tmp_path / "kafka") as broker:
        turn = Round(broker.bootstrap_servers, 5)
        try:
            relay, log = started(turn, tmp_path, "relay")
            broker.stop()
            assert wait_until(lambda: "Kafka cannot be used" in log.read_text(), 30.0)
            status, seconds = ended(relay)
        finally:
            broker.start()
            turn.close()
    text = log.read_text()
    assert (status, seconds < END_SECONDS) == (0, True), seconds
    assert "Traceback" not in text
    assert "[aiokafka" not in text


@pytest.mark.parametrize("part", ["gauges", "fold"])
def test_a_defect_ends_a_relay_with_one_line(turn, tmp_path, part):
    log = Path(tmp_path / "log")
    command = [sys.executable, "-m", "tests.support.relay.defect_process", part, "--config", str(turn.file)]
    relay = spawn(command, log, folder=REPOSITORY)
    try:
        assert relay.wait(60) == 1
    finally:
        stop([relay])
    text = log.read_text()
    assert text.splitlines()[-1] == (
        "Error: the relay ended by a defect, KeyError in defect_process.py:16; please report it"
    )
    assert "Traceback" not in text
    assert "Mallory" not in text
