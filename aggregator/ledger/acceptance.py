"""Which packs count: a function of the log's prefix and the ledger's terms, never of a clock or a file.

Rule 1: a pack is accepted or rejected whole, for one reason.
Rule 2: the decision depends on the record, on the time until which windows are closed (which its own append
time has moved) and on the ids counted before it; so a replay decides the same.
Rule 3: cheap checks come first; of a rejected pack only the reason is kept.
"""

from collections.abc import Mapping

from deniable.aggregator.ledger.counting.bit_counting import is_countable
from deniable.aggregator.ledger.pack_ids import PackIds
from deniable.aggregator.ledger.terms import Terms
from deniable.protocol import wire

NONE_SEEN = PackIds()  # never added to
UNKNOWN_COLLECTION = "unknown_collection"
REASONS = (
    "malformed",
    "unsupported_version",
    "oversized",
    UNKNOWN_COLLECTION,
    "bad_cohort",
    "bad_value",
    "too_early",
    "too_late",
    "duplicate",
    "misrouted",
    "window_full",
)
# Detail of UNKNOWN_COLLECTION if a collection of the same name is counted.
OTHER_PARAMETERS = "same name, other parameters"


class Rejection(Exception):
    """A pack that does not count.

    `fingerprint` and `window_start` are 0 unless the pack is in time for a window of a known collection, so
    that no sender can grow the ledger by inventing them. `reports` is 0 where `fingerprint` is.
    """

    def __init__(self, reason: str, fingerprint: int = 0, window_start: int = 0, reports: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.fingerprint = fingerprint
        self.window_start = window_start
        self.reports = reports


class Acceptance:
    """The checks of one partition.

    Parameters
    ----------
    terms : of the ledger, by fingerprint; the ledger may add to them.
    partition : partition of `reports`, 0..partitions-1.
    partitions : number of partitions of `reports`.
    """

    def __init__(self, terms: Mapping[int, Terms], partition: int, partitions: int) -> None:
        self.terms = terms
        self.partition = partition
        self.partitions = partitions

    def accept(
        self,
        offset: int,
        record: bytes,
        append_ms: int,
        closed_until_ms: int,
        seen: Mapping[tuple[int, int], PackIds],
    ) -> wire.Pack:
        """Check one record and return its pack.

        Parameters
        ----------
        offset : of the record.
        record : its value.
        append_ms : its log append time, unix milliseconds.
        closed_until_ms : of the ledger, this record's append time included, unix milliseconds.
        seen : ids already counted, by fingerprint and window start.

        Raises
        ------
        Rejection with the reason.
        """
        try:
            pack = wire.decode(record)
        except wire.WireError as error:
            raise Rejection(error.reason) from error
        terms = self.terms.get(pack.fingerprint)
        if terms is None or not terms.hold_at(offset):
            raise Rejection(UNKNOWN_COLLECTION)
        self._check_header(pack, terms)
        _check_time(pack, terms, append_ms, closed_until_ms)
        ids = seen.get((pack.fingerprint, pack.window_start), NONE_SEEN)
        if pack.pack_id in ids:
            raise _rejection("duplicate", pack, pack.window_start)
        if len(ids) >= terms.span(pack.window_start).window_packs:
            raise _rejection("window_full", pack, pack.window_start)
        if not is_countable(pack):
            raise _rejection("bad_value", pack, pack.window_start)
        return pack

    def _check_header(self, pack: wire.Pack, terms: Terms) -> None:
        if pack.mechanism != terms.mechanism or pack.width != terms.width:
            raise _rejection("malformed", pack)
        if pack.window_start % terms.window_seconds:
            raise _rejection("malformed", pack)
        if wire.partition_of(pack.pack_id, self.partitions) != self.partition:
            raise _rejection("misrouted", pack)
        if pack.cohort >= terms.cohorts:
            raise _rejection("bad_cohort", pack)


def _check_time(pack: wire.Pack, terms: Terms, append_ms: int, closed_until_ms: int) -> None:
    if pack.window_start * 1000 > append_ms + wire.EARLY_SECONDS * 1000:
        raise _rejection("too_early", pack)
    if closed_until_ms > terms.closes_at(pack.window_start) * 1000:
        raise _rejection("too_late", pack)


def _rejection(reason: str, pack: wire.Pack, window_start: int = 0) -> Rejection:
    return Rejection(reason, pack.fingerprint, window_start, pack.reports)
