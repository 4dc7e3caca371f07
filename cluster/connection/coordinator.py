"""Ask a coordinator of groups or transactions, which a new broker starts only when first asked."""

import time
from collections.abc import Callable
from typing import TypeVar

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NotCoordinatorError,
)

COORDINATOR_SECONDS = 20.0
#: Raised while a new broker creates and loads its topics of offsets and transactions.
STARTING_ERRORS = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)

T = TypeVar("T")


def patiently(ask: Callable[[], T]) -> T:
    """Return the answer; ask again while the broker starts, and raise KafkaError after 20 s."""
    deadline = time.monotonic() + COORDINATOR_SECONDS
    while True:
        try:
            return ask()
        except STARTING_ERRORS:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
