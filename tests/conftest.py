"""Fixtures of all tests: a real Kafka broker, and unique names for topics."""

import gc
import os
import signal
import uuid
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from deniable.deploy.broker.errors import ToolMissingError
from deniable.deploy.broker.jars import fetch_jars, find_java
from tests.support.brokers.choice import choice_of, images, started
from tests.support.needed import missing

if TYPE_CHECKING:
    from tests.support.brokers.secured.broker import SecuredBroker

pytest_plugins = [
    "tests.support.brokers.run_wide",
    "tests.support.messages",
    "tests.support.producers.fixtures",
    "tests.support.aggregator.fixtures",
]

# Tests start some twenty brokers, most for seconds: without its second compiler Java needs a fifth less of a
# processor.
os.environ.setdefault("KAFKA_JVM_PERFORMANCE_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# As the commands set it, before anything imports numpy: a second thread of OpenBLAS waits in a loop, which
# takes ten times as much of the processor for the matrices of the estimators.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A deadline for each example, or for drawing it, fails on a busy machine, and shows nothing on any other.
settings.register_profile(
    "random", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # make test-all
settings.register_profile("deniable", settings.get_profile("random"), derandomize=True)
settings.register_profile("quick", settings.get_profile("deniable"), max_examples=25)  # make quick
settings.load_profile("deniable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bootstrap-servers", metavar="HOST:PORT", help="use this broker, start none")
    parser.addoption("--broker", choices=["docker", "jars"], help="start this kind of broker")
    parser.addoption("--kafka-image", metavar="NAME", help="an image of Apache's or Confluent's Kafka")


def pytest_sessionstart(session: pytest.Session) -> None:
    """End on SIGTERM as on Ctrl-C, so that fixtures stop their processes; handle signals that nohup ignores.

    A command under test takes KeyboardInterrupt for its own: then the run ends after its test.

    Child processes inherit ignored signals, and tests send them SIGINT and SIGHUP.
    """

    def end(number: int, frame: FrameType | None) -> None:
        session.shouldstop = signal.Signals(number).name
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Say why nothing was run, if the marks of a command left out all that was chosen."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and terminalreporter.stats.get("deselected"):
        terminalreporter.write_line(
            "No chosen test belongs to this command: try make test or make test-all, or another -k."
        )


def pytest_collection_finish() -> None:
    """Leave the thousands of tests out of garbage collection, which takes a second with them."""
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that use the fixture `browser`."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker("browser")


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Skip without Java or Maven; fail in CI, which has them."""
    try:
        find_java()
        fetch_jars()
    except ToolMissingError as error:
        missing(str(error))


def pytest_report_header(config: pytest.Config) -> str:
    """Say which broker the tests use."""
    return f"broker: {choice_of(config)}"


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """Bootstrap servers of one broker for the whole run, chosen by options and by what is installed."""
    choice = choice_of(request.config)
    if choice.kind == "jars":
        request.getfixturevalue("kafka_jars")
    elif choice.kind == "docker" and images() is None:
        missing(str(choice))
    with started(choice) as servers:
        yield servers


@pytest.fixture(scope="session")
def secured_broker(kafka_jars: None) -> Iterator["SecuredBroker"]:
    """One broker for the whole run with TLS, SCRAM, client certificates, and nothing allowed.

    Starts in 6 s on a quiet machine. A test that changes its certificate, or stops it, must restore it; names
    of users and topics begin with `topic_prefix`.
    """
    from tests.support.brokers.secured.broker import (
        SecuredBroker,  # here, so that fast tests do not import a Kafka client
    )

    with SecuredBroker() as secured:
        yield secured


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test or run uses."""
    return f"test-{uuid.uuid4().hex[:12]}-"
