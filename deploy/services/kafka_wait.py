"""Wait for Kafka at the start of a program that runs for long."""

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from deniable.cluster.connection.probe import RefusedError, UnreachableError

RETRY_SECONDS = 1.0

T = TypeVar("T")

_log = structlog.get_logger(__name__)


def once_kafka_answers(ask: Callable[[], T]) -> T:
    """Return the answer; while no broker gives one, ask again, and log once for what, once when it came.

    A signal ends the process meanwhile, as before any command works.

    Raises
    ------
    RefusedError and whatever else no waiting mends: wrong credentials, missing permissions or topics.
    """
    began = 0.0
    while True:
        try:
            answer = ask()
        except RefusedError:
            raise
        except UnreachableError as error:
            if not began:
                began = time.monotonic()
                _log.warning("waiting for Kafka", reason=str(error))
            time.sleep(RETRY_SECONDS)
            continue
        if began:
            _log.info("Kafka answers", after_seconds=round(time.monotonic() - began))
        return answer
