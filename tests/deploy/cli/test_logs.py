"""Libraries speak up from WARNING on, whatever level their loggers ask for."""

import asyncio
import errno
import gc
import logging
import os
import re
from collections.abc import Iterator

import pytest
import structlog
from aiokafka.errors import ProducerFenced

from deniable.deploy.cli.logs import QUIET_SECONDS, configure_logs, silence

LINE = re.compile(r"\d\d:\d\d:\d\d \[(\w+) *\] (.*?) *(?:\[([\w.]+)\])?")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    yield
    root.handlers = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def shown(capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, str]]:
    """Level, event and logger of each line, which all have one form."""
    output = capsys.readouterr()
    assert output.out == ""
    lines = [LINE.fullmatch(line) for line in output.err.splitlines()]
    assert all(lines), output.err
    return [(line[1], line[2], line[3] or "") for line in lines if line]


def test_library_with_its_own_level_is_filtered(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("test.library")
    logger.setLevel(logging.INFO)
    configure_logs()
    logger.info("chatter")
    logger.warning("trouble")
    configure_logs(verbose=True)
    logger.info("asked for")
    logging.getLogger("test.other").debug("payload")
    assert shown(capsys) == [
        ("warning", "trouble", "test.library"),
        ("info", "asked for", "test.library"),
    ]


def test_a_silenced_library_speaks_only_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("testlibrary.part")
    for verbose in (False, True):
        configure_logs(verbose)
        silence("testlibrary")
        logger.error("no broker answers")
        logging.getLogger("testlibraryother").error("trouble")
    assert [name for _, _, name in shown(capsys)] == [
        "testlibraryother",
        "testlibrary.part",
        "testlibraryother",
    ]


@pytest.mark.parametrize(
    ("name", "level", "text", "values"),
    [
        (
            "aiokafka.producer.sender",
            logging.WARNING,
            "Got error produce response on topic-partition %s, retrying. Error: %s",
            ("state-1", "<class 'aiokafka.errors.NotEnoughReplicasError'>"),
        ),
        (
            "aiokafka.consumer.group_coordinator",
            logging.WARNING,
            "Heartbeat failed for group %s because it is rebalancing",
            ("deniable-aggregator",),
        ),
        (
            "aiokafka.consumer.group_coordinator",
            logging.ERROR,
            "Group Coordinator Request failed: %s",
            ("[Error 15] GroupCoordinatorNotAvailableError",),
        ),
        (
            "faust.transport.drivers.aiokafka",
            logging.ERROR,
            "[^-Consumer]: Aiokafka has not sent fetch request for %r since start (started %s)",
            ("reports-1", "5 minutes ago"),
        ),
        ("kafka.net.selector", logging.WARNING, "Task took %s seconds", (0.2,)),
    ],
)
def test_routine_is_left_out_and_only_that(
    capsys: pytest.CaptureFixture[str], name: str, level: int, text: str, values: tuple[object, ...]
) -> None:
    configure_logs()
    logging.getLogger(name).log(level, text, *values)
    assert shown(capsys) == []
    other = logging.ERROR if level == logging.WARNING else logging.CRITICAL
    logging.getLogger(name).log(other, text, *values)
    logging.getLogger("another").log(level, text, *values)
    assert [line[0] for line in shown(capsys)] == [
        logging.getLevelName(other).lower(),
        logging.getLevelName(level).lower(),
    ]
    configure_logs(verbose=True)
    logging.getLogger(name).log(level, text, *values)
    assert len(shown(capsys)) == 1


def test_library_messages_do_not_repeat_and_have_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 1000.0
    monkeypatch.setattr("deniable.deploy.cli.logs.time.monotonic", lambda: moment)
    configure_logs()
    logger = logging.getLogger("test.library")
    for node in range(3):
        logger.error("cannot reach %s", node, exc_info=ValueError("inner"))
    moment += QUIET_SECONDS
    logger.error("cannot reach %s", 7)
    assert [line[1] for line in shown(capsys)] == ["cannot reach 0", "cannot reach 7"]


def test_our_log_lines_are_repeated_in_one_format(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs()
    for _ in range(2):
        structlog.get_logger().info("ledger open", partition=3)
    structlog.get_logger().debug("detail")
    assert shown(capsys) == [("info", "ledger open              partition=3", "")] * 2


def test_full_stderr_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr("sys.stderr", full)
        configure_logs()
        structlog.get_logger().warning("ledger lost")
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            full.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


def test_no_traceback_shows_a_variable(capsys: pytest.CaptureFixture[str]) -> None:
    """What a frame holds may be a true value, or a payload."""
    configure_logs(verbose=True)

    def fail(held: str) -> None:
        raise OSError(f"disk of {len(held)} bytes")

    try:
        fail("canary-" + str(5518))
    except OSError:
        logging.getLogger("aiokafka").exception("it failed")
    message = capsys.readouterr().err
    assert "disk of 11 bytes" in message
    assert "canary-5518" not in message


def test_errors_that_a_silenced_library_leaves_to_asyncio_are_its_own_matter(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The sender of aiokafka fails in a batch that is done; its futures have errors that nobody asks for."""

    async def leave(error: Exception) -> None:
        asyncio.get_running_loop().create_future().set_exception(error)
        gc.collect()

    configure_logs()
    silence("aiokafka")
    for error in (ProducerFenced(), KeyError("ours")):
        asyncio.run(leave(error))
    said = capsys.readouterr().err
    assert (said.count("never retrieved"), said.count("ours")) == (1, 1)
