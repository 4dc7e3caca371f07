"""What `reports` must hold, by the log of `uploads` alone: its packs, made with the relays' secret. Pure.

The fold is the relay's own, from the first record that is left, without groups, commits, rebalances and other
relays: whatever those lost or sent with other content shows as a difference.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple, Protocol

from deniable.protocol import wire
from deniable.relay.fold import Fold, Start
from deniable.relay.keys import RelayKeys

DIGEST_BYTES = 16


class StoredUploads(Protocol):
    """One record of `uploads`; time in unix milliseconds."""

    offset: int
    timestamp: int
    value: bytes | None


class ExpectedPack(NamedTuple):
    """A pack that must be in `reports`: its window, number of reports, and digest of its bytes."""

    window: tuple[int, int]
    reports: int
    digest: bytes


@dataclass
class UploadRecount:
    """A recount, of one partition or of several.

    Parameters
    ----------
    packs : by id, of batches that relays have committed.
    reports : accepted, in these batches.
    rejected : reports by reason, in these batches.
    held : reports that are held back or wait until their batch ends and is committed, by window.
    whole_after_ms : windows that start up to then are not whole, since records are deleted, unix
        milliseconds; -1 if all are.
    without_settings : partitions of which no record that is left says how to fold them.
    """

    packs: dict[bytes, ExpectedPack] = field(default_factory=dict)
    reports: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    held: Counter[tuple[int, int]] = field(default_factory=Counter)
    whole_after_ms: int = -1
    without_settings: tuple[int, ...] = ()

    def add(self, other: "UploadRecount") -> None:
        """Add another partition."""
        self.packs |= other.packs
        self.reports += other.reports
        self.rejected += other.rejected
        self.held += other.held
        self.whole_after_ms = max(self.whole_after_ms, other.whole_after_ms)
        self.without_settings += other.without_settings


def digest_of(record: bytes) -> bytes:
    """Return what tells a record of `reports` from others."""
    return blake2b(record, digest_size=DIGEST_BYTES).digest()


def recount_uploads(
    partition: int, keys: RelayKeys, first: int, records: Iterable[StoredUploads], committed: int
) -> UploadRecount:
    """Fold one partition.

    Parameters
    ----------
    partition : of `uploads`.
    keys : of the relays.
    first : the first offset of the log.
    records : from there on.
    committed : the relays' position; packs of batches that end later need not be sent yet.

    Raises
    ------
    ControlError if the log was written with another secret or by a newer relay.
    """
    fold, found = Fold(partition, keys, Start(first)), UploadRecount()
    for record in records:
        batch = fold.apply(record.offset, record.timestamp, record.value)
        if batch is None:
            continue
        if batch.end > committed:
            for each in batch.releases:
                found.held[each.intake.fingerprint, each.window_start] += len(each.rows)
            continue
        found.reports += sum(batch.outcomes.reports.values())
        for (_, _, reason), reports in batch.outcomes.rejected_reports.items():
            found.rejected[reason] += reports
        for pack in batch.packs(keys):
            window = (pack.fingerprint, pack.window_start)
            found.packs[pack.pack_id] = ExpectedPack(window, pack.reports, digest_of(wire.encode(pack)))
    for key, held in fold.windows.open.items():
        if held.held_reports:
            found.held[key] += held.held_reports
    found.whole_after_ms = fold.whole_after_ms
    if fold.settings is None and fold.position > 0:
        found.without_settings = (partition,)
    return found


@dataclass
class Missing:
    """Packs of uploads that workers did not count, by window: reports by reason.

    A reason is that of the worker that rejected the pack; `absent` if it is not in `reports`, `changed` if a
    pack with its id and other bytes was counted.
    """

    expected: Counter[tuple[int, int]] = field(default_factory=Counter)
    reports: dict[tuple[int, int], Counter[str]] = field(default_factory=dict)

    @property
    def difference(self) -> int:
        """Sum of the reports."""
        return sum(each.total() for each in self.reports.values())


class PackJudge:
    """Compares the packs of uploads with the outcome of each record of `reports`.

    Parameters
    ----------
    recount : of all partitions of `uploads`.
    """

    def __init__(self, recount: UploadRecount) -> None:
        self._expected = recount.packs
        self._counted: set[bytes] = set()
        self._reasons: dict[bytes, str] = {}
        self.other_reports = 0

    def counted(self, pack: wire.Pack, record: bytes) -> None:
        """Note a pack that counts."""
        expected = self._expected.get(pack.pack_id)
        if expected is None:
            self.other_reports += pack.reports
        elif expected.digest == digest_of(record):
            self._counted.add(pack.pack_id)
        else:
            self._reasons[pack.pack_id] = "changed"

    def rejected(self, record: bytes, reason: str) -> None:
        """Note a record that does not count; repetitions of a counted pack change nothing."""
        try:
            pack_id = wire.decode(record).pack_id
        except wire.WireError:
            return
        if pack_id in self._expected:
            self._reasons.setdefault(pack_id, reason)

    def missing(self) -> Missing:
        """Return what was not counted."""
        found = Missing()
        for pack_id, pack in self._expected.items():
            found.expected[pack.window] += pack.reports
            if pack_id not in self._counted:
                reasons = found.reports.setdefault(pack.window, Counter())
                reasons[self._reasons.get(pack_id, "absent")] += pack.reports
        return found
