"""The last record that a ledger has counted, by which it knows its log again. Pure.

Kafka keeps it with the group's offset, in the ledger's transaction: rows stay as former releases read them.
"""

from typing import NamedTuple, Self

from deniable.aggregator.ledger.runs.run import UNKNOWN_EPOCH, Run

_VERSION = "1"


class LastRecord(NamedTuple):
    """A record of `reports`, markers included.

    Parameters
    ----------
    offset : of the record.
    epoch : of the leader that appended it; UNKNOWN_EPOCH if the client does not say.
    append_ms : its log append time, unix milliseconds.
    """

    offset: int
    epoch: int
    append_ms: int

    @classmethod
    def of(cls, run: Run, number: int) -> Self:
        """The record with this number in a run."""
        return cls(int(run.offsets[number]), run.epoch, int(run.append_ms[number]))

    def is_same(self, other: "LastRecord") -> bool:
        """Whether both are one record: no leader appends two at one offset."""
        epochs = {self.epoch, other.epoch} - {UNKNOWN_EPOCH}
        return self[::2] == other[::2] and len(epochs) < 2

    def encode(self) -> str:
        """Text for the metadata of a committed offset."""
        return f"{_VERSION} {self.offset} {self.epoch} {self.append_ms}"


def decode_last_record(text: str) -> LastRecord | None:
    """Inverse of `encode`; None if it is empty or another program's, as that of releases before."""
    version, *fields = text.split() or [""]
    try:
        return LastRecord(*map(int, fields)) if version == _VERSION and len(fields) == 3 else None
    except ValueError:
        return None
