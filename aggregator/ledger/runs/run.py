"""A run: consecutive records of one partition, in arrays."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.outcomes import Headers

Integers = npt.NDArray[np.int64]
UNKNOWN_EPOCH = -1


class FetchedRecord(Protocol):
    """A record as a Kafka client returns it."""

    @property
    def offset(self) -> int:
        """Its offset."""

    @property
    def timestamp(self) -> int:
        """Its log append time, unix milliseconds."""

    @property
    def value(self) -> bytes | None:
        """Its value."""

    @property
    def headers(self) -> Headers:
        """Its headers."""


@dataclass(frozen=True)
class Run:
    """Records with ascending offsets, n of them.

    Parameters
    ----------
    data : contains all values; other bytes may lie between them.
    offsets, append_ms : int64 (n,), of the records; log append times in unix milliseconds.
    starts, lengths : int64 (n,), of the values in `data`; a null value has length 0.
    headers_of : headers of a record, by its number in the run.
    epoch : of the leader that appended them all; UNKNOWN_EPOCH if the client does not say.
    """

    data: bytes
    offsets: Integers
    append_ms: Integers
    starts: Integers
    lengths: Integers
    headers_of: Callable[[int], Headers]
    epoch: int = UNKNOWN_EPOCH

    def __len__(self) -> int:
        return len(self.offsets)

    def record(self, number: int) -> bytes:
        """Value of a record, by its number in the run."""
        start = int(self.starts[number])
        return self.data[start : start + int(self.lengths[number])]

    def part(self, first: int, end: int) -> "Run":
        """The records first..end-1 as a run, without a copy of their values."""
        kept = slice(first, end)
        return Run(
            self.data,
            self.offsets[kept],
            self.append_ms[kept],
            self.starts[kept],
            self.lengths[kept],
            lambda number: self.headers_of(first + number),
            self.epoch,
        )

    @classmethod
    def of(cls, records: Iterable[FetchedRecord]) -> "Run":
        """Records that a client has returned one by one."""
        found = list(records)
        values = [record.value or b"" for record in found]
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        return cls(
            b"".join(values),
            np.fromiter((record.offset for record in found), np.int64, len(found)),
            np.fromiter((record.timestamp for record in found), np.int64, len(found)),
            lengths.cumsum() - lengths,
            lengths,
            lambda number: found[number].headers,
        )
