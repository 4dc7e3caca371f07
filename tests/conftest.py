"""What tests share: a real Kafka broker, and names of their own for topics."""

import signal
import uuid
from collections.abc import Iterator

import pytest
from hypothesis import settings
from needed import missing

from deploy.broker_errors import ToolMissingError
from deploy.broker_jars import fetch_jars, find_java

# A time for each example fails tests on a busy machine, and shows nothing on any other.
settings.register_profile("deniable", deadline=None)
settings.load_profile("deniable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bootstrap-servers", metavar="HOST:PORT", help="use this broker, start none")


def pytest_configure() -> None:
    """End on SIGTERM as on Ctrl-C, so that fixtures stop what they started."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Skip where Java or Maven is missing; fail in CI, which has them."""
    try:
        find_java()
        fetch_jars()
    except ToolMissingError as error:
        missing(str(error))


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Iterator[str]:
    """Bootstrap servers of one broker for the whole run: that of the option, else one started here."""
    given = request.config.getoption("--bootstrap-servers")
    if given:
        yield given
        return
    request.getfixturevalue("kafka_jars")
    from deploy.broker import Broker  # here, so that fast tests do not load a Kafka client

    with Broker() as embedded:
        yield embedded.bootstrap_servers


@pytest.fixture
def topic_prefix() -> str:
    """A prefix that no other test and no other run has used."""
    return f"test-{uuid.uuid4().hex[:12]}-"
