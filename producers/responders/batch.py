"""A batch: checked values of one collection, and the function that will randomize them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.mechanisms.mechanism import Mechanism
from deniable.producers.randomization.prf import CLIENT_KEY_BYTES
from deniable.protocol.wire import report_bytes

PART_REPORTS = 65_536
PART_BYTES = 4 * 2**20
# Bytes of a report in the queue beside its payload: window, cohort, key of its client.
QUEUED_BYTES = 8 + 2 + CLIENT_KEY_BYTES


def parts(mechanism: Mechanism, count: int) -> Iterator[slice]:
    """Yield slices of `count` values whose reports are small enough for the queue."""
    size = report_bytes(mechanism.wire_number, mechanism.width) + QUEUED_BYTES
    step = min(PART_REPORTS, PART_BYTES // size)
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


CHUNK_BYTES = 2**18

Responses = tuple[NDArray[np.uint16], NDArray[np.uint8]]


@dataclass(frozen=True, eq=False)
class Deferred:
    """Reports of longitudinal local hashing that are made once it is known which buckets they may show.

    Kept in memory only.

    Parameters
    ----------
    buckets : int64 (n,), in [1, g]: of the true values, each client's under a permutation of its own.
    owners : uint64 (n, 2), `Memory.digest` of each client.
    respond : makes the reports, uint8 (n, bytes of a report), of such buckets and owners.
    """

    buckets: NDArray[np.int64] = field(repr=False)
    owners: NDArray[np.uint64] = field(repr=False)
    respond: Callable[[NDArray[np.int64], NDArray[np.uint64]], NDArray[np.uint8]] = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Their size."""
        return self.buckets.nbytes + self.owners.nbytes

    def only(self, chosen: NDArray[np.bool_]) -> "Deferred":
        """Return the chosen ones, bool (n,)."""
        return replace(self, buckets=self.buckets[chosen], owners=self.owners[chosen])

    def reports(self) -> NDArray[np.uint8]:
        """Make the reports, in wire format."""
        return self.respond(self.buckets, self.owners)


@dataclass(frozen=True)
class Batch:
    """Checked values, not yet randomized.

    Parameters
    ----------
    count : n, the number of values.
    clients : of each value; None if every value is from a different client.
    respond : randomizes a slice of m values, only once each: returns cohorts, uint16 (m,), and reports in
        wire format, uint8 (m, bytes of a report).
    defer : the same for a slice of values whose clients show only some changes of their bucket, with zeros
        instead of reports, and what makes the reports; None if the mechanism has no such buckets, or
        `clients` is None.
    """

    count: int
    clients: list[str] | None = field(repr=False)
    respond: Callable[[slice], Responses] = field(repr=False)
    defer: Callable[[slice], tuple[Responses, Deferred]] | None = field(default=None, repr=False)


class Responder(Protocol):
    """Randomizes the values of one collection."""

    @property
    def unknown(self) -> int:
        """Number of unknown values so far. It must not leave this machine."""

    def prepare(self, values: object, clients: object) -> Batch:
        """Check values and, unless None, the client of each.

        Raises
        ------
        TypeError if a value or client has the wrong type; ValueError if their numbers differ.
        """


def chunks(count: int, row_bytes: int) -> Iterator[slice]:
    """Yield slices of `count` rows of at most CHUNK_BYTES, or one row: what fits a processor's cache."""
    size = max(1, CHUNK_BYTES // row_bytes)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def in_one_cohort(reports: NDArray[np.unsignedinteger]) -> Responses:
    """Return reported buckets, an array of `bucket_dtype` (n,), in the only cohort."""
    return np.zeros(len(reports), np.uint16), reports.view(np.uint8).reshape(len(reports), reports.itemsize)
