"""The packs of one partition of `uploads`: a pure fold over its records.

Rule 1: `apply` is called for each record, in offset order. It reads no clock, no file and no randomness, so
any relay with the key makes the same packs of the same log, under the same ids, however often.
Rule 2: a batch ends after the record that brings `batch_reports` uploaded reports, whether they count or not,
and after each record of a relay. So where batches end depends on nothing but the records since any earlier
end, and never on which uploads were seen before.
Rule 3: what happens to a window depends on batch ends and on the uploads that could reach it, which were
appended from EARLY_SECONDS before its start until it closed. So a fold that begins at any earlier end
releases the reports of this window like every other fold.

A retired collection never returns, and a changed grace applies to windows that nothing has reached yet
(`control`, `intake`): else a fold that begins after the change would differ from one that began before it.

By rules 2 and 3 a relay needs no memory but the log: see `recovery`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from deniable.protocol import wire
from deniable.protocol.uploads.upload import UploadError
from deniable.relay.acceptance import Moment, Outcomes, UploadAcceptance
from deniable.relay.columns import Groups, decode_columns, uploads_in
from deniable.relay.control import ControlError, RelaySettings, decode_control, is_control, is_settings
from deniable.relay.intake import EARLY_MS, Intakes
from deniable.relay.keys import RelayKeys
from deniable.relay.windows import ClosedWindow, Release, Windows


def seal(release: Release, pack_reports: int, keys: RelayKeys) -> Iterator[wire.Pack]:
    """Cut a release into packs of about equal size, at most `pack_reports` reports each.

    Which reports share a pack is random, so a pack that workers reject takes away no particular values.
    """
    intake = release.intake
    size = wire.report_bytes(intake.mechanism, intake.width)
    most = min(pack_reports, (wire.MAX_RECORD_BYTES - wire.HEADER_BYTES) // size)
    count = -(-len(release.rows) // most)
    bounds = [len(release.rows) * each // count for each in range(count + 1)]
    for number, (first, end) in enumerate(pairwise(bounds)):
        rows = release.rows[first:end]
        yield wire.Pack(
            mechanism=intake.mechanism,
            cohort=release.cohort,
            fingerprint=intake.fingerprint,
            window_start=release.window_start,
            reports=end - first,
            width=intake.width,
            pack_id=keys.pack_id(release.context, number),
            payload=rows.tobytes(),
        )


class Start(NamedTuple):
    """Where a fold begins: at the end of a batch, or where a log begins.

    Parameters
    ----------
    offset : of the first record to apply.
    watermark_ms : the highest append time before, unix milliseconds.
    settings : in force there; None if the first settings are yet to come.
    settings_offset : of a record with these settings.
    """

    offset: int
    watermark_ms: int = -1
    settings: RelaySettings | None = None
    settings_offset: int = -1


@dataclass(frozen=True)
class RelayBatch:
    """What leaves at the end of a batch.

    Parameters
    ----------
    end : offset after its last record.
    watermark_ms : the highest append time until there, unix milliseconds.
    settings : in force after it.
    pack_reports : of a full pack, at most.
    releases : reports that leave.
    outcomes : of its uploads.
    closed : windows that end with it.
    """

    end: int
    watermark_ms: int
    settings: RelaySettings
    pack_reports: int
    releases: list[Release]
    outcomes: Outcomes
    closed: tuple[ClosedWindow, ...] = ()

    def packs(self, keys: RelayKeys) -> list[wire.Pack]:
        """Return the packs to send."""
        return [pack for each in self.releases for pack in seal(each, self.pack_reports, keys)]


class Fold:
    """One partition of `uploads`.

    Windows that may have got uploads before `start` are `incomplete`: their uploads are rejected. A fold from
    the log's first offset 0 has none.

    Parameters
    ----------
    partition : of `uploads`.
    keys : of the relays.
    start : where it begins.
    """

    def __init__(self, partition: int, keys: RelayKeys, start: Start) -> None:
        self.partition = partition
        self.position = start.offset
        self.watermark_ms = start.watermark_ms
        self.settings: RelaySettings | None = None
        self.settings_offsets: dict[int, int] = {}  # of the newest record of each revision
        self.intakes = Intakes()
        self.windows = Windows()
        self.ended_ms = start.watermark_ms  # the watermark at the last end of a batch
        self.uploaded = 0  # reports since then
        self.whole_after_ms = -1  # windows that start up to then may be incomplete, unix milliseconds
        self._keys = keys
        self._is_whole = start.offset == 0
        self._whole_after_ms: dict[int, int] = {}
        self._acceptance = UploadAcceptance(self.intakes, self.windows)
        self._outcomes = Outcomes()
        if start.settings is not None:
            self._adopt(start.settings, start.settings_offset)

    def apply(self, offset: int, append_ms: int, record: bytes | None) -> RelayBatch | None:
        """Take one record; return the batch that it ends.

        Parameters
        ----------
        offset : of the record; offsets that a log lacks may be left out.
        append_ms : its log append time, unix milliseconds.
        record : its value.

        Raises
        ------
        ControlError if the partition belongs to relays with another secret, or to newer ones.
        """
        self.position = offset + 1
        self.watermark_ms = max(self.watermark_ms, append_ms)
        if record is not None and is_control(record):
            return self._control(offset, record)
        try:
            groups, damaged = decode_columns(record or b"")
        except UploadError as error:
            self._outcomes.rejected[0, 0, error.reason] += 1
            return None
        self._outcomes.uploads += uploads_in(record or b"")
        for reason, count in damaged.items():
            self._outcomes.rejected[0, 0, reason] += count
        return self._take(groups, append_ms)

    def _take(self, groups: Groups, append_ms: int) -> RelayBatch | None:
        settings = self.settings
        if settings is None:
            self._outcomes.reject("incomplete", groups)
            return None
        self.uploaded += int(groups.reports.sum())
        is_ours = groups.low % settings.partitions == self.partition
        if not is_ours.all():
            self._outcomes.reject("misrouted", groups.take(~is_ours))
            groups = groups.take(is_ours)
        moment = Moment(append_ms, self.watermark_ms, self._whole_after_ms)
        self._acceptance.accept(groups, moment, settings.window_uploads, self._outcomes)
        return self._end(settings, settings) if self.uploaded >= settings.batch_reports else None

    def _control(self, offset: int, record: bytes) -> RelayBatch | None:
        try:
            found = decode_control(self._keys, self.partition, record)
        except ValueError:
            if self.settings is None and is_settings(record):
                raise ControlError(
                    f"uploads partition {self.partition}: its settings were written with another secret; all "
                    "relays of a deployment must have the same one: replace the one here by a copy of theirs"
                ) from None
            self._outcomes.rejected[0, 0, "not_authentic"] += 1
            return None
        held = self.settings
        if found is None:
            return self._end(held, held) if held else None
        if held is None or found.follow(held):
            batch = self._end(held, found)
            self._adopt(found, offset)
            return batch
        if found == held:
            self.settings_offsets[found.revision] = offset
            return self._end(held, held)
        return None

    def _adopt(self, settings: RelaySettings, offset: int) -> None:
        if self.settings is None and not self._is_whole:
            # Collections that begin later have no earlier uploads, so all their windows are whole.
            after_ms = self.whole_after_ms = self.watermark_ms + EARLY_MS
            self._whole_after_ms = {each.fingerprint: after_ms for each in settings.collections}
        self.settings = settings
        self.settings_offsets[settings.revision] = offset
        self.intakes.adopt(settings, self.watermark_ms)

    def _end(self, held: RelaySettings | None, following: RelaySettings) -> RelayBatch:
        """End a batch under the settings held until now; those that follow are in force from then on."""
        place = (self.partition, self.position)
        releases = self.windows.release(self.watermark_ms, held, self._keys, place) if held else []
        outcomes, self._outcomes = self._outcomes, Outcomes()
        self.uploaded, self.ended_ms = 0, self.watermark_ms
        pack_reports = (held or following).pack_reports
        closed = tuple(self.windows.closed) if held else ()
        return RelayBatch(
            self.position, self.watermark_ms, following, pack_reports, releases, outcomes, closed
        )
