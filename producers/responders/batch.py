"""A batch: checked values of one collection that wait to be randomized, and who randomizes them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from estimators.mechanisms.mechanism import Mechanism
from producers.randomization.prf import CLIENT_KEY_BYTES
from producers.wire import mechanism_number, report_bytes

PART_REPORTS = 65_536
PART_BYTES = 4 * 2**20
# What a report takes in the queue beside its own bytes: window, cohort, key of its client.
QUEUED_BYTES = 8 + 2 + CLIENT_KEY_BYTES


def parts(mechanism: Mechanism, count: int) -> Iterator[slice]:
    """Slices of `count` values whose reports are small enough for the queue."""
    size = report_bytes(mechanism_number(mechanism), mechanism.width) + QUEUED_BYTES
    step = min(PART_REPORTS, PART_BYTES // size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


CHUNK_BYTES = 2**18

Responses = tuple[NDArray[np.uint16], NDArray[np.uint8]]


@dataclass(frozen=True)
class Batch:
    """Checked values, not yet randomized.

    Parameters
    ----------
    count : n, the number of values.
    clients : of each value; None where every value is a client of its own.
    respond : randomizes a slice of m values, once: cohorts, uint16 (m,), and reports as they are on the wire,
        uint8 (m, bytes of a report).
    """

    count: int
    clients: list[str] | None = field(repr=False)
    respond: Callable[[slice], Responses] = field(repr=False)


class Responder(Protocol):
    """Randomizes the values of one collection."""

    @property
    def unknown(self) -> int:
        """Values so far that the collection does not know. It must not leave this machine."""

    def prepare(self, values: object, clients: object) -> Batch:
        """Check values and, unless None, the client of each.

        Raises
        ------
        TypeError if a value or client is of the wrong type, ValueError if there are not as many of both.
        """


def chunks(count: int, row_bytes: int) -> Iterator[slice]:
    """Cut so many rows into slices of CHUNK_BYTES at most, or one row: what a processor's cache holds."""
    size = max(1, CHUNK_BYTES // row_bytes)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))
