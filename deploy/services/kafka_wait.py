"""Wait for Kafka at the start of a program that runs for long."""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import TypeVar

import structlog
from prometheus_client import CollectorRegistry

from deniable.cluster.connection.probe import RefusedError, UnreachableError
from deniable.deploy.services.metrics_server import probes_at

RETRY_SECONDS = 1.0

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class Waiting:
    """The health of a program that waits: alive and not ready, without metrics yet.

    Parameters
    ----------
    reason : why Kafka cannot be reached.
    """

    def __init__(self, reason: str) -> None:
        self.registry = CollectorRegistry()
        self._reason = reason

    def reasons_not_ready(self) -> list[str]:
        """Return why `/readyz` answers 503."""
        return [f"waiting for Kafka: {self._reason}"]


def once_kafka_answers(
    ask: Callable[[], T],
    places: Mapping[str, tuple[str, int] | None] | None = None,
) -> T:
    """Return the answer; while no broker gives one, ask again, and log once for what, once when it came.

    A signal ends the process meanwhile, as before any command works.

    Parameters
    ----------
    ask : asks Kafka.
    places : where health is served while the program waits, so that nobody restarts it: addresses and ports
        by the option that gives them; not at port 0, which will be another one.

    Raises
    ------
    RefusedError and whatever else no waiting mends: wrong credentials, missing permissions or topics.
    """
    try:
        return ask()
    except RefusedError:
        raise
    except UnreachableError as error:
        reason = str(error)
    began = time.monotonic()
    _log.warning("waiting for Kafka", reason=reason)
    with ExitStack() as probes:
        for option, place in (places or {}).items():
            if place is not None and place[1]:
                probes.enter_context(probes_at(place, Waiting(reason), option))
        answer = _awaited(ask)
    _log.info("Kafka answers", after_seconds=round(time.monotonic() - began))
    return answer


def _awaited(ask: Callable[[], T]) -> T:
    while True:
        time.sleep(RETRY_SECONDS)
        try:
            return ask()
        except RefusedError:
            raise
        except UnreachableError:
            continue
