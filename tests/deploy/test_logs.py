"""Libraries speak up from WARNING on, whatever level their loggers ask for."""

import logging
from collections.abc import Iterator

import pytest
import structlog

from deploy.logs import QUIET_SECONDS, configure_logs


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_a_library_with_a_level_of_its_own_is_quiet_too(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("test.library")
    logger.setLevel(logging.INFO)
    configure_logs()
    logger.info("chatter")
    logger.warning("trouble")
    configure_logs(verbose=True)
    logger.info("asked for")
    logging.getLogger("test.other").debug("payload")
    output = capsys.readouterr()
    assert output.out == ""
    assert [line.rpartition(": ")[2] for line in output.err.splitlines()] == ["trouble", "asked for"]


def test_only_the_retry_after_a_transaction_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    sender = logging.getLogger("aiokafka.producer.sender")
    text = "Got error produce response on topic-partition %s, retrying. Error: %s"
    sender.warning(text, "state-1", "<class 'aiokafka.errors.NotEnoughReplicasError'>")
    sender.error("NotEnoughReplicasError")
    sender.warning(text, "state-1", "<class 'aiokafka.errors.RequestTimedOutError'>")
    logging.getLogger("aiokafka.client").warning("NotEnoughReplicasError")
    said = capsys.readouterr().err.splitlines()
    assert ["Timed" in said[1], [line.split()[2] for line in said]] == [True, ["ERROR", "WARNING", "WARNING"]]


def test_a_library_says_a_thing_once_in_a_while_and_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 1000.0
    monkeypatch.setattr("deploy.logs.time.monotonic", lambda: moment)
    configure_logs()
    logger = logging.getLogger("test.library")
    for node in range(3):
        logger.error("cannot reach %s", node, exc_info=ValueError("inner"))
    moment += QUIET_SECONDS
    logger.error("cannot reach %s", 7)
    said = capsys.readouterr().err.splitlines()
    assert [line.rpartition(": ")[2] for line in said] == ["cannot reach 0", "cannot reach 7"]


def test_our_own_news_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    structlog.get_logger().info("ledger open", partition=3)
    output = capsys.readouterr()
    assert (output.out, "ledger open" in output.err, "partition=3" in output.err) == ("", True, True)
