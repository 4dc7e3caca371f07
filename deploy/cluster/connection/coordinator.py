"""Asking who coordinates groups and transactions, which a new broker does not at once."""

import time
from collections.abc import Callable
from typing import TypeVar

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)

COORDINATOR_SECONDS = 20.0
#: Of a new broker, while it makes and loads its topics of offsets and of transactions.
STARTING_ERRORS = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)

T = TypeVar("T")


def patiently(ask: Callable[[], T]) -> T:
    """The answer, asked for again while the broker starts; KafkaError when it takes longer than 20 s."""
    deadline = time.monotonic() + COORDINATOR_SECONDS
    while True:
        try:
            return ask()
        except STARTING_ERRORS:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
