"""The whole path with real processes: uploads, a relay, workers, estimates; and a broker that restarts."""

import re
import signal
import subprocess
import sys
import time

import pytest

from deniable.deploy.broker.broker import Broker
from deniable.deploy.broker.child_processes import deniable_command
from tests.support.processes import wait_until
from tests.support.relay.rounds import Round
from tests.support.relay.uploaded import INTAKE_GRACE

pytestmark = [pytest.mark.broker, pytest.mark.all]

COUNT_SECONDS = 120.0
STILL_SECONDS = 10.0  # more than the longest window and its grace
AWAY_SECONDS = 15.0  # longer than a request waits


def command(turn, *arguments, log):
    with (turn.file.parent / log).open("wb") as output:
        given = [*deniable_command(*arguments), "--config", str(turn.file)]
        return subprocess.Popen(given, stdout=output, stderr=output)


def replayed(turn):
    """Run the recount as an operator does; return exit status, difference and what it says."""
    given = [*deniable_command("replay", "--uploads", "--wait", "60"), "--config", str(turn.file)]
    ended = subprocess.run(given, capture_output=True, text=True, timeout=COUNT_SECONDS)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture
def turn(broker):
    found = Round(broker, 8)
    yield found
    found.close()


def test_uploads_become_estimates_and_the_recount_agrees(turn):
    workers = [command(turn, "aggregate", "--web-port", "0", log=f"worker-{each}.log") for each in range(2)]
    try:
        turn.start(point="in", batches=4)
        turn.start(point="after", batches=5)
        turn.send(6.0)
        turn.start()
        counted = turn.settled(60.0)
        assert turn.difference(counted) == 0
        assert wait_until(turn.has_said_all, 60.0)
        status, difference, said = replayed(turn)
        sys.stdout.write(f"{said}{difference}")
        assert (status, difference) == (0, "difference: 0\n"), said
        assert f"{turn.uploaded.reports:,} reports accepted" in said
    finally:
        for worker in workers:
            worker.terminate()
        assert [worker.wait(30) for worker in workers] == [0, 0]


def test_windows_wait_for_a_relay_that_is_behind(broker):
    """It stands still until the grace of each window that it works on has long passed."""
    turn = Round(broker, 10, grace_seconds=INTAKE_GRACE + 1)
    worker = command(turn, "aggregate", "--web-port", "0", log="worker.log")
    try:
        relay = turn.start()
        turn.send(1.0)
        assert wait_until(turn.is_waited_for, 60.0)
        relay.send_signal(signal.SIGSTOP)
        turn.send(2.0)
        time.sleep(STILL_SECONDS)
        relay.send_signal(signal.SIGCONT)
        assert wait_until(turn.has_said_all, 60.0)
        status, difference, said = replayed(turn)
        assert (status, difference) == (0, "difference: 0\n"), said
        assert f"{turn.uploaded.reports:,} reports accepted" in said
    finally:
        worker.terminate()
        assert worker.wait(30) == 0
        turn.close()


def test_the_recount_names_what_is_missing(turn):
    """Packs that a relay has committed and not sent."""
    turn.start(loses_packs=True)
    turn.send(3.0)
    worker = command(turn, "aggregate", "--web-port", "0", log="worker.log")
    try:
        assert wait_until(turn.has_said_all, 60.0)
        status, difference, said = replayed(turn)
    finally:
        worker.terminate()
        worker.wait(30)
    sys.stdout.write(f"{said}{difference}")
    held = sum(
        map(int, re.findall(r"^(\d+) reports? of \d+ windows? (?:is|are) held back", said, re.MULTILINE))
    )
    assert (status, difference) == (1, f"difference: {turn.uploaded.reports - held}\n")
    assert "relayed-krr, window 20" in said


@pytest.mark.nightly
def test_a_broker_that_restarts_loses_nothing(tmp_path):
    with Broker(tmp_path) as broker:
        turn = Round(broker.bootstrap_servers, 9)
        try:
            relays = [turn.start(), turn.start()]
            turn.send(3.0)
            broker.stop()
            time.sleep(AWAY_SECONDS)
            assert [each.poll() for each in relays] == [None, None]
            broker.start()
            turn.reconnect()
            turn.send(3.0)
            assert turn.difference(turn.settled(90.0)) == 0
            assert wait_until(turn.has_said_all, 60.0)
            assert [turn.end(each) for each in relays] == [0, 0]
            logs = [log.read_text() for log in turn.logs]
            sys.stdout.write("".join(logs))
            assert all(
                log.count("Kafka cannot be used;") == log.count("Kafka can be used again") == 1
                for log in logs
            )
        finally:
            turn.close()
