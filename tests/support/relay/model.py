"""What counts of a log, by the documented rules alone: one upload after the other, in plain Python."""

from collections import Counter

from deniable.protocol import wire
from deniable.protocol.uploads.frame import decode_frame
from deniable.protocol.uploads.upload import Upload, UploadError, UploadGroup, decode_upload
from deniable.relay.control import Intake, decode_control, is_control
from tests.support.relay.logs import KEYS, PARTITION, PARTITIONS, Log

Report = tuple[int, int, int, bytes]  # fingerprint, window start, cohort, one row
Rejection = tuple[int, int, str]  # fingerprint and window start, both 0 if it is in no open window; reason


class Model:
    """Accepted reports, and rejected groups by window and reason."""

    def __init__(self) -> None:
        self.reports: Counter[Report] = Counter()
        self.rejected: Counter[Rejection] = Counter()
        self._intakes: dict[int, Intake] = {}
        self._graces: dict[int, list[tuple[int, int]]] = {}
        self._ids: dict[tuple[int, int], set[bytes]] = {}
        self._watermark_ms = -1
        self._revision = 0
        self._ended: set[int] = set()

    def take(self, log: Log) -> "Model":
        for _, append_ms, value in log.records:
            self._watermark_ms = max(self._watermark_ms, append_ms)
            if is_control(value):
                self._control(value)
            else:
                self._frame(value, append_ms)
        return self

    def _control(self, value: bytes) -> None:
        try:
            settings = decode_control(KEYS, PARTITION, value)
        except ValueError:
            self.rejected[0, 0, "not_authentic"] += 1
            return
        if settings is None or settings.revision <= self._revision:
            return
        ended = self._ended | self._intakes.keys() - {each.fingerprint for each in settings.collections}
        if not ended <= set(settings.retired):
            return
        self._ended = ended
        self._revision = settings.revision
        self._intakes = {each.fingerprint: each for each in settings.collections}
        for each in settings.collections:
            spans = self._graces.setdefault(each.fingerprint, [])
            after = self._watermark_ms + 300_000 if spans else -1
            spans.append((after, each.grace_seconds))

    def _frame(self, value: bytes, append_ms: int) -> None:
        try:
            uploads = decode_frame(value)
        except UploadError as error:
            self.rejected[0, 0, error.reason] += 1
            return
        for data in uploads:
            try:
                self._upload(decode_upload(data), append_ms)
            except UploadError as error:
                self.rejected[0, 0, error.reason] += 1

    def _upload(self, upload: Upload, append_ms: int) -> None:
        new = set()
        for group in upload.groups:
            window = (group.fingerprint, group.window_start)
            reason = self._reason(upload, group, append_ms)
            if reason:
                self.rejected[*(window if reason in ("bad_value", "duplicate") else (0, 0)), reason] += 1
                continue
            new.add(window)
            size = wire.report_bytes(group.mechanism, group.width)
            for first in range(0, len(group.rows), size):
                self.reports[*window, group.cohort, bytes(group.rows[first : first + size])] += 1
        for window in new:
            self._ids.setdefault(window, set()).add(upload.upload_id)

    def _reason(self, upload: Upload, group: UploadGroup, append_ms: int) -> str | None:
        if wire.partition_of(upload.upload_id, PARTITIONS) != PARTITION:
            return "misrouted"
        intake = self._intakes.get(group.fingerprint)
        if intake is None:
            return "unknown_collection"
        start = group.window_start
        if (group.mechanism, group.width) != (
            intake.mechanism,
            intake.width,
        ) or start % intake.window_seconds:
            return "malformed"
        if group.cohort >= intake.cohorts:
            return "bad_cohort"
        if start * 1000 > append_ms + 300_000:
            return "too_early"
        grace = [each for after, each in self._graces[group.fingerprint] if start * 1000 > after][-1]
        if self._watermark_ms > (start + intake.window_seconds + grace) * 1000:
            return "too_late"
        size = wire.report_bytes(group.mechanism, group.width)
        values = [
            int.from_bytes(group.rows[first : first + size], "little")
            for first in range(0, len(group.rows), size)
        ]
        if intake.mechanism != wire.RAPPOR_NUMBER and max(values) >= intake.width:
            return "bad_value"
        if upload.upload_id in self._ids.get((group.fingerprint, start), ()):
            return "duplicate"
        return None
