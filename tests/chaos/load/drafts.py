"""Uploads of the load, each with a bucket for itself, and invalid ones of all kinds that an edge tells apart.

Implements the documented format separately, to reveal mistakes of the product's encoder.

Rule: no two uploads of a window report the same bucket of `each`. So the count of a bucket says how often an
upload was counted.
"""

import random
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from struct import Struct

from crc32c import crc32c

from deniable.estimators.collection import Collection

HEADER = Struct("<4sBH16s")
GROUP = Struct("<QBHQII")
DAY = 86_400
MOST_BYTES = 65_536


@dataclass(frozen=True)
class Group:
    """The fields of one group, which may be invalid."""

    fingerprint: int
    mechanism: int
    cohort: int
    window_start: int
    width: int
    rows: bytes
    reports: int = 1

    def encode(self) -> bytes:
        numbers = (self.fingerprint, self.mechanism, self.cohort, self.window_start)
        return GROUP.pack(*numbers, self.reports, self.width) + self.rows


@dataclass
class Draft:
    """One upload; `is_told` once an edge has answered that Kafka has its good groups."""

    upload_id: bytes
    groups: tuple[Group, ...]
    is_told: bool = False
    magic: bytes = b"DNBU"
    version: int = 1
    body: bytes = field(init=False)

    def __post_init__(self) -> None:
        head = HEADER.pack(self.magic, self.version, len(self.groups), self.upload_id)
        data = head + b"".join(group.encode() for group in self.groups)
        self.body = data + struct.pack("<I", crc32c(data))

    @property
    def window_start(self) -> int:
        return self.groups[0].window_start

    @property
    def bucket(self) -> int:
        return int.from_bytes(self.groups[0].rows, "little")


class Drafts:
    """All uploads of a run, drawn for the present window. Safe to use from several threads.

    Parameters
    ----------
    each : a k-RR collection with a bucket for each upload of a window.
    bits : a RAPPOR collection with windows of the same length.
    seed : of all choices, including ids of uploads.
    """

    def __init__(self, each: Collection, bits: Collection, seed: int) -> None:
        self.each, self.bits = each, bits
        self.drawn: list[Draft] = []
        self._chance = random.Random(seed)
        self._used: Counter[int] = Counter()
        self._lock = threading.Lock()

    def draw(self) -> Draft:
        """Return a new upload that must count; a third has a second group, a few an invalid one, too."""
        with self._lock:
            window = self.each.window_start(time.time())
            bucket = self._used[window]
            if bucket == self.each.width - 1:
                raise RuntimeError(f"more uploads in a window than the {bucket} buckets of `each`")
            self._used[window] += 1
            draft = self._draft(window, bucket)
            self.drawn.append(draft)
        return draft

    def waste(self) -> Draft:
        """Return an upload that nobody sends as a whole; all share the last bucket, which must stay 0."""
        with self._lock:
            return self._draft(self.each.window_start(time.time()), self.each.width - 1)

    def _draft(self, window: int, bucket: int) -> Draft:
        chance, each, bits = self._chance, self.each, self.bits
        groups = [Group(each.fingerprint, 1, 0, window, each.width, bucket.to_bytes(2, "little"))]
        if chance.random() < 0.3:
            cohort, rows = chance.randrange(bits.cohorts), chance.randbytes(2 * bits.width // 8)
            groups.append(Group(bits.fingerprint, 2, cohort, window, bits.width, rows, 2))
        if chance.random() < 0.03:
            groups.append(replace(groups[0], cohort=9))
        return Draft(chance.randbytes(16), tuple(groups))


def _with(draft: Draft, **changed: int | bytes) -> bytes:
    """Change the only group that is sent."""
    return Draft(draft.upload_id, (replace(draft.groups[0], **changed),)).body  # type: ignore[arg-type]


def _flipped(draft: Draft) -> bytes:
    return draft.body[:-6] + bytes((draft.body[-6] ^ 1,)) + draft.body[-5:]


#: How to invalidate an upload, and the status of its answer.
INVALID: tuple[tuple[Callable[[Draft], bytes], int], ...] = (
    (lambda draft: b"", 400),
    (lambda draft: b"no upload at all", 400),
    (lambda draft: draft.body[:-3], 400),
    (lambda draft: draft.body + b"more", 400),
    (_flipped, 400),
    (lambda draft: replace(draft, magic=b"DNBK").body, 400),
    (lambda draft: replace(draft, version=2).body, 400),
    (lambda draft: replace(draft, groups=()).body, 400),
    (lambda draft: replace(draft, groups=draft.groups[:1] * 65).body, 400),
    (lambda draft: _with(draft, fingerprint=draft.groups[0].fingerprint ^ 1), 409),
    (lambda draft: _with(draft, mechanism=9), 400),
    (lambda draft: _with(draft, cohort=9), 400),
    (lambda draft: _with(draft, width=draft.groups[0].width - 1), 400),
    (lambda draft: _with(draft, reports=0, rows=b""), 400),
    (lambda draft: _with(draft, reports=2), 400),
    (lambda draft: _with(draft, rows=b"\xff\xff"), 400),
    (lambda draft: _with(draft, window_start=draft.window_start + 1), 400),
    (lambda draft: _with(draft, window_start=draft.window_start + DAY), 400),
    (lambda draft: _with(draft, window_start=draft.window_start - DAY), 400),
    (lambda draft: bytes(MOST_BYTES + 1), 413),
)
