"""What became of the uploads of each batch: one JSON record in the topic `rejected-uploads`. Pure.

A record has the reports accepted and the groups rejected since the batch before it, by collection, window and
reason, and nothing else of an upload. Its key is the batch: partition and end offset.

Rule: a batch that is sent again has the same record, so a reader keeps one record of each key. Then accepted
and rejected reports together are those of all uploads for which a device got its answer, each repetition
included: a repeated upload is rejected as `duplicate`, or as `too_late` once its window has closed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Self

import msgspec

from deniable.estimators.errors import DeniableError
from deniable.relay.fold import RelayBatch

VERSION = 1


class OutcomeRecordError(DeniableError, ValueError):
    """A record of `rejected-uploads` is not one of this version."""


class Accepted(msgspec.Struct, frozen=True):
    """Reports of a collection's window that were accepted. `fingerprint`: 16 hex digits."""

    fingerprint: str
    window: int
    reports: int


class RejectedGroups(msgspec.Struct, frozen=True):
    """Rejected groups, and their reports; collection and window are null if no window can be named."""

    reason: str
    groups: int
    reports: int
    fingerprint: str | None = None
    window: int | None = None


class OutcomeRecord(msgspec.Struct, frozen=True):
    """One batch of `uploads`.

    Parameters
    ----------
    partition : of `uploads`.
    begin, end : offset of the batch's first record, and after its last.
    accepted, rejected : see there; empty lists where there are none.
    version : of this record.
    """

    partition: int
    begin: int
    end: int
    accepted: tuple[Accepted, ...] = ()
    rejected: tuple[RejectedGroups, ...] = ()
    version: int = VERSION

    @property
    def key(self) -> bytes:
        """The batch, for Kafka."""
        return f"{self.partition}-{self.end}".encode()

    @classmethod
    def of(cls, partition: int, begin: int, batch: RelayBatch) -> Self | None:
        """Return a batch's record; None if it has no uploads."""
        outcomes = batch.outcomes
        accepted = tuple(
            Accepted(f"{fingerprint:016x}", window, reports)
            for (fingerprint, window), reports in sorted(outcomes.reports.items())
        )
        rejected = tuple(
            RejectedGroups(
                reason,
                groups,
                outcomes.rejected_reports[fingerprint, window, reason],
                f"{fingerprint:016x}" if fingerprint else None,
                window if fingerprint else None,
            )
            for (fingerprint, window, reason), groups in sorted(outcomes.rejected.items())
        )
        if not (accepted or rejected):
            return None
        return cls(partition, begin, batch.end, accepted, rejected)

    def encode(self) -> bytes:
        """Encode it."""
        return msgspec.json.encode(self)


def decode_outcomes(value: bytes | None) -> OutcomeRecord:
    """Decode one record.

    Raises
    ------
    OutcomeRecordError, and nothing else, whatever the bytes are.
    """
    try:
        found = msgspec.json.decode(value or b"", type=OutcomeRecord)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise OutcomeRecordError("must be a record of a batch of uploads") from None
    if found.version != VERSION:
        raise OutcomeRecordError(f"version must be {VERSION}, got {found.version}")
    return found


@dataclass
class Totals:
    """Reports by outcome, over all batches that were added.

    Parameters
    ----------
    accepted : reports.
    rejected : reports by reason.
    groups : rejected groups by reason.
    """

    accepted: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)

    @property
    def uploaded(self) -> int:
        """Reports of all uploads, repeated ones included: what clients were told that Kafka has."""
        return self.accepted + sum(self.rejected.values())


def totals(records: Iterable[OutcomeRecord]) -> Totals:
    """Add up records; of those with one key, which are batches sent again, the first counts."""
    found, known = Totals(), set[bytes]()
    for record in records:
        if record.key in known:
            continue
        known.add(record.key)
        found.accepted += sum(each.reports for each in record.accepted)
        for each in record.rejected:
            _add(found.rejected, each.reason, each.reports)
            _add(found.groups, each.reason, each.groups)
    return found


def _add(counts: dict[str, int], reason: str, count: int) -> None:
    counts[reason] = counts.get(reason, 0) + count
