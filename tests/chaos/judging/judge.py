"""Decide which packs of a log count: a second implementation of the documented wire format and rules.

Shares no code with the ledger, its acceptance rules or the product's wire format.
"""

import struct
from collections import Counter, defaultdict
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR
from tests.chaos.load.packs import MARKER

HEADER = struct.Struct("<4sBBHQQII16sI")
CHECKED_BYTES = 48
MOST_BYTES = 1_000_000
EARLY_SECONDS = 300
MARKER_BYTES = 5  # of a marker that says nothing of relays
WAITING = struct.Struct("<Qqq")
LAST_SECOND = 253_402_300_799

#: Reasons that are counted by window, and expire with it.
OF_WINDOWS = {"duplicate", "window_full", "bad_value"}

Cell = tuple[int, int, int]  # fingerprint, window start, cohort


class Judge:
    """Judges the records of one partition in offset order.

    Parameters
    ----------
    collections : by fingerprint, including those that are retired later.
    partition, partitions : of the log.
    retired : by fingerprint, the offset from which packs are rejected.
    stored_to : the offset to which workers counted. They may have appended a marker after it, which tells
        nobody yet that a window has expired.
    """

    def __init__(
        self,
        collections: Mapping[int, Collection],
        partition: int,
        partitions: int,
        retired: Mapping[int, int] | None = None,
        stored_to: int | None = None,
    ) -> None:
        self.collections = collections
        self.retired = retired or {}
        self.partition = partition
        self.partitions = partitions
        self.stored_to = stored_to
        self.payloads: defaultdict[Cell, list[bytes]] = defaultdict(list)
        self.refused: Counter[tuple[int, int, str]] = (
            Counter()
        )  # by fingerprint and window start (0 without a window)
        self.ids: set[bytes] = set()
        self.seen: set[bytes] = set()  # ids of well-formed packs, whether counted or not
        self.late: dict[bytes, tuple[Cell, bytes]] = {}  # packs that came too late, by id
        self.records = 0
        self._packs: Counter[tuple[int, int]] = Counter()  # by fingerprint and window start
        self._newest_ms = self._closed_ms = self._number = 0
        self._waiting = [0, 0]  # until when relays have sent, and how long windows wait for that at most

    def take(self, append_ms: int, value: bytes | None, offset: int = 0) -> None:
        """Judge the next record; `append_ms` is its append time, unix milliseconds."""
        is_marker = value is not None and value.startswith(MARKER)
        if is_marker and self.stored_to is not None and offset >= self.stored_to:
            return
        self._newest_ms = max(self._newest_ms, append_ms)
        if is_marker and len(value) > MARKER_BYTES:
            number, *waiting = WAITING.unpack_from(value, MARKER_BYTES)
            if number > self._number:  # copies, and those of former owners, are not heeded
                self._number, self._waiting = number, waiting
        sent_ms, wait_ms = self._waiting
        closed_ms = max(min(self._newest_ms, sent_ms), self._newest_ms - wait_ms)
        self._closed_ms = max(self._closed_ms, closed_ms)
        if is_marker:
            return
        self.records += 1
        reason = self._fault_of_bytes(value)
        if value is None or reason:
            self.refused[0, 0, reason] += 1
            return
        self.seen.add(HEADER.unpack_from(value)[8])
        reason = self._fault_of_pack(append_ms, value, offset)
        if reason:
            window = HEADER.unpack_from(value)[4:6] if reason in OF_WINDOWS else (0, 0)
            self.refused[*window, reason] += 1
            if reason == "too_late":
                _, _, _, cohort, fingerprint, window_start, *_, pack_id, _ = HEADER.unpack_from(value)
                cell = (fingerprint, window_start, cohort)
                self.late[pack_id] = (cell, value[HEADER.size :])

    @property
    def rejected(self) -> Counter[str]:
        """Return the number of rejected packs, by reason."""
        return by_reason(self.refused)

    def is_dead(self, fingerprint: int, window: int) -> bool:
        """Return whether the counts of a window must be deleted by now."""
        collection = self.collections.get(fingerprint)
        if collection is None or not window:
            return False
        closes = window + collection.window_seconds + collection.grace_seconds
        return self._closed_ms > (closes + collection.retention_seconds) * 1000

    def _fault_of_bytes(self, value: bytes | None) -> str:
        if value is not None and len(value) > MOST_BYTES:
            return "oversized"
        if value is None or len(value) < 5 or value[:4] != b"DNBL":
            return "malformed"
        if value[4] != 1:
            return "unsupported_version"
        if len(value) < HEADER.size:
            return "malformed"
        _, _, mechanism, _, _, window, reports, width, _, checksum = HEADER.unpack_from(value)
        payload = value[HEADER.size :]
        if crc32c(payload, crc32c(value[:CHECKED_BYTES])) != checksum:
            return "malformed"
        size = _report_bytes(mechanism, width)
        whole = size and reports and len(payload) == reports * size and window <= LAST_SECOND
        return "" if whole else "malformed"

    def _fault_of_pack(self, append_ms: int, value: bytes, offset: int) -> str:
        _, _, mechanism, cohort, fingerprint, window, _, width, pack_id, _ = HEADER.unpack_from(value)
        collection = self.collections.get(fingerprint)
        if collection is None or offset >= self.retired.get(fingerprint, offset + 1):
            return "unknown_collection"
        krr = isinstance(collection.mechanism, KRR)
        if (mechanism == 1) != krr or mechanism == 3 or width != collection.width:
            return "malformed"
        if window % collection.window_seconds:
            return "malformed"
        if int.from_bytes(pack_id[:8], "little") % self.partitions != self.partition:
            return "misrouted"
        if cohort >= collection.cohorts:
            return "bad_cohort"
        if window * 1000 > append_ms + EARLY_SECONDS * 1000:
            return "too_early"
        closes = window + collection.window_seconds + collection.grace_seconds
        if self._closed_ms > closes * 1000:
            return "too_late"
        if pack_id in self.ids:
            return "duplicate"
        if self._packs[fingerprint, window] == collection.window_packs:
            return "window_full"
        payload = value[HEADER.size :]
        if krr and int(buckets_of(payload, width).max()) >= width:
            return "bad_value"
        self.ids.add(pack_id)
        self._packs[fingerprint, window] += 1
        self.payloads[fingerprint, window, cohort].append(payload)
        return ""


def by_reason(refused: Mapping[tuple[int, int, str], int]) -> Counter[str]:
    reasons: Counter[str] = Counter()
    for (_, _, reason), packs in refused.items():
        reasons[reason] += packs
    return reasons


def buckets_of(payload: bytes, width: int) -> npt.NDArray[np.unsignedinteger]:
    return np.frombuffer(payload, "<u1" if width <= 1 << 8 else "<u2" if width <= 1 << 16 else "<u4")


def _report_bytes(mechanism: int, width: int) -> int:
    if mechanism == 2:
        return width // 8 if 8 <= width <= 4096 and width % 8 == 0 else 0
    if mechanism in (1, 3) and 2 <= width <= 1 << 31:
        return 1 if width <= 1 << 8 else 2 if width <= 1 << 16 else 4
    return 0
