"""A worker whose broker has gone still ends: by itself in time, and at once when it is asked twice."""

import asyncio
import signal
import threading
import time
from pathlib import Path

import pytest

from deniable.deploy.broker.broker import Broker
from deniable.deploy.services.aggregate.command import STOP_SECONDS, _print_failure
from tests.support.deployments import Deployment
from tests.support.processes import wait_until

SLACK_SECONDS = 15
AT_ONCE_SECONDS = 3


@pytest.mark.broker
@pytest.mark.usefixtures("kafka_jars")
@pytest.mark.nightly
def test_a_worker_without_a_broker_ends_in_time(topic_prefix: str, tmp_path: Path) -> None:
    with Broker() as broker:
        deployment = Deployment(tmp_path, broker.bootstrap_servers, topic_prefix)
        deployment.create_topics()
        with (
            deployment.started("patient.log", "aggregate", "--web-port", "0") as patient,
            deployment.started("urgent.log", "aggregate", "--web-port", "0") as urgent,
        ):
            for log in ("patient.log", "urgent.log"):
                assert wait_until(lambda log=log: "ledger open" in deployment.output(log), 120), (
                    deployment.output(log)
                )
            broker.kill()
            began = time.monotonic()
            patient.send_signal(signal.SIGINT)
            urgent.send_signal(signal.SIGINT)
            time.sleep(AT_ONCE_SECONDS)
            assert urgent.poll() is None, "it ended by itself: nothing is left to hurry"
            urgent.send_signal(signal.SIGINT)
            assert urgent.wait(AT_ONCE_SECONDS) == 130
            assert patient.wait(STOP_SECONDS + SLACK_SECONDS) in (0, 1)
            assert time.monotonic() - began < STOP_SECONDS + SLACK_SECONDS
        for log in ("patient.log", "urgent.log"):
            assert "Traceback" not in deployment.output(log)


@pytest.mark.parametrize(("failure", "reported"), [(asyncio.CancelledError(), ""), (OSError("disk"), "disk")])
def test_only_a_cancelled_thread_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], failure: BaseException, reported: str
) -> None:
    """Faust's thread ends so when it is stopped without a broker; whatever else goes wrong is shown."""

    def fail() -> None:
        raise failure

    monkeypatch.setattr(threading, "excepthook", _print_failure)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    message = capfd.readouterr().err
    assert reported in message
    assert bool(message) == bool(reported)
