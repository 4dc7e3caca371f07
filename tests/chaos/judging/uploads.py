"""Decide which uploads of a log are accepted: a second implementation of the documented rules.

Shares no code with the relay but the layout of `rejected-uploads`. Edges let only valid groups through, so
what is left to decide is whether a group is in time, and whether its upload came before.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from struct import Struct

from crc32c import crc32c

from deniable.estimators.collection import Collection
from deniable.relay.service.outcomes import Totals, decode_outcomes, totals
from tests.chaos.judging.judge import Cell
from tests.chaos.judging.recount import records_of

FRAME = Struct("<4sBH")
UPLOAD = Struct("<4sBH16s")
GROUP = Struct("<QBHQII")
CRC_BYTES = 4
CONTROL = b"DNBC"


@dataclass
class Uploaded:
    """What a log of uploads holds.

    Parameters
    ----------
    ids : of all uploads.
    rows : of accepted groups, by fingerprint, window start and cohort.
    accepted : their reports.
    rejected : reports of the other groups, by reason.
    """

    ids: set[bytes] = field(default_factory=set)
    rows: defaultdict[Cell, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)


class UploadJudge:
    """Judges the records of one partition of `uploads` in offset order.

    Parameters
    ----------
    uploaded : added to.
    collections : by fingerprint.
    delivery_seconds : by which windows take uploads for less time than their grace.
    """

    def __init__(
        self, uploaded: Uploaded, collections: Mapping[int, Collection], delivery_seconds: int
    ) -> None:
        self._uploaded, self._collections = uploaded, collections
        self._delivery_seconds = delivery_seconds
        self._ids: defaultdict[tuple[int, int], set[bytes]] = defaultdict(set)
        self._newest_ms = 0

    def take(self, append_ms: int, record: bytes) -> None:
        """Judge the next record; `append_ms` is its append time, unix milliseconds."""
        self._newest_ms = max(self._newest_ms, append_ms)
        if record[:4] == CONTROL:
            return
        for upload in _uploads_in(record):
            self._upload(upload)

    def _upload(self, data: bytes) -> None:
        _, _, count, upload_id = UPLOAD.unpack_from(data)
        if crc32c(data[:-CRC_BYTES]) != int.from_bytes(data[-CRC_BYTES:], "little"):
            raise RuntimeError("an upload with a wrong checksum is in the log")
        self._uploaded.ids.add(upload_id)
        place, new = UPLOAD.size, set()
        for _ in range(count):
            fingerprint, mechanism, cohort, window, reports, width = GROUP.unpack_from(data, place)
            size = reports * (width // 8 if mechanism == 2 else 1 if width <= 256 else 2)
            rows = data[place + GROUP.size : place + GROUP.size + size]
            place += GROUP.size + size
            reason = self._reason(upload_id, fingerprint, window)
            if reason:
                self._uploaded.rejected[reason] += reports
                continue
            new.add((fingerprint, window))
            self._uploaded.accepted += reports
            self._uploaded.rows[fingerprint, window, cohort].append(rows)
        for key in new:
            self._ids[key].add(upload_id)

    def _reason(self, upload_id: bytes, fingerprint: int, window: int) -> str:
        collection = self._collections[fingerprint]
        closes = window + collection.window_seconds + collection.grace_seconds - self._delivery_seconds
        if self._newest_ms > closes * 1000:
            return "too_late"
        return "duplicate" if upload_id in self._ids[fingerprint, window] else ""


def _uploads_in(record: bytes) -> Iterator[bytes]:
    _, _, count = FRAME.unpack_from(record)
    place = FRAME.size + 4 * count
    for number in range(count):
        first = FRAME.size + 4 * number
        size = int.from_bytes(record[first : first + 4], "little")
        yield record[place : place + size]
        place += size


def uploaded(
    servers: str, topic: str, partitions: int, collections: Mapping[int, Collection], delivery_seconds: int
) -> Uploaded:
    """Read the topic `uploads` to its end; RuntimeError like `recount`."""
    found = Uploaded()
    judges = [UploadJudge(found, collections, delivery_seconds) for _ in range(partitions)]
    for partition, record in records_of(servers, topic, partitions):
        judges[partition].take(record.timestamp, record.value)
    return found


def outcomes(servers: str, topic: str, partitions: int) -> Totals:
    """Add up what relays say became of the uploads."""
    return totals(decode_outcomes(record.value) for _, record in records_of(servers, topic, partitions))
