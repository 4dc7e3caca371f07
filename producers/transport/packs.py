"""What the pipeline gives to a delivery, and hears of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class OutgoingPack:
    """A pack between the outbox and the broker.

    Parameters
    ----------
    number : its number in the outbox.
    partition : of the topic, in [0, partitions).
    fingerprint : of the collection.
    window_start : unix seconds. Becomes the record's timestamp, which would otherwise reveal this machine's
        clock.
    reports : their number.
    record : bytes to send.
    """

    number: int
    partition: int
    fingerprint: int
    window_start: int
    reports: int
    record: bytes = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """Outcomes of packs since the last call.

    Parameters
    ----------
    acknowledged : append time of each pack that the broker has appended, unix milliseconds, by number; None
        of a pack that an edge has taken, which gives none.
    lost : numbers of packs to send again. They may nevertheless have been appended.
    too_large : numbers of packs that the broker refused for their size, and would refuse again.
    rejected : reason of each pack that an edge has rejected for good, by number.
    """

    acknowledged: Mapping[int, int | None]
    lost: frozenset[int]
    too_large: frozenset[int] = frozenset()
    rejected: Mapping[int, str] = field(default_factory=dict)
