"""What a test logged, without the lines of Kafka clients that a former test of the process has left."""

import logging

import pytest

CLIENTS = ("kafka", "aiokafka")


def logged(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Return the records in their order; clients log in threads of their own, at any time."""
    return [each for each in caplog.records if not each.name.startswith(CLIENTS)]


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return their texts."""
    return [each.getMessage() for each in logged(caplog)]
