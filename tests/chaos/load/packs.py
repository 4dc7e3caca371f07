"""Valid packs, and packs malformed in every way that a worker distinguishes.

Implements the documented wire format separately, with its own header and checksum, to reveal mistakes of the
product's encoder.
"""

import random
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from crc32c import crc32c

from deniable.estimators.collection import Collection
from deniable.estimators.mechanisms.krr import KRR

CHECKED = struct.Struct("<4sBBHQQII16s")
CHECKSUM = struct.Struct("<I")
MARKER = b"DNBM"  # how markers of workers begin: nothing to count
REPORTS = 20
PAYLOADS = 64  # created beforehand, so a pack takes microseconds


@dataclass(frozen=True)
class Draft:
    """The fields of a pack, which may be invalid."""

    cohort: int
    fingerprint: int
    window_start: int
    width: int
    pack_id: bytes
    payload: bytes
    mechanism: int
    reports: int = REPORTS
    magic: bytes = b"DNBL"
    version: int = 1

    def home(self, partitions: int) -> int:
        """The partition of `reports` that its id determines."""
        return int.from_bytes(self.pack_id[:8], "little") % partitions

    def encode(self) -> bytes:
        """Return the record, with a correct checksum even if fields are invalid."""
        head = CHECKED.pack(
            self.magic,
            self.version,
            self.mechanism,
            self.cohort,
            self.fingerprint,
            self.window_start,
            self.reports,
            self.width,
            self.pack_id,
        )
        return b"".join((head, CHECKSUM.pack(crc32c(self.payload, crc32c(head))), self.payload))


class PackMaker:
    """Creates packs of one collection with random ids, cohorts and payloads."""

    def __init__(self, collection: Collection, chance: random.Random) -> None:
        self.collection = collection
        self.chance = chance
        self.krr = isinstance(collection.mechanism, KRR)
        self._payloads = [self._payload() for _ in range(PAYLOADS)]

    def draft(self) -> Draft:
        """Return a pack for the present window."""
        collection, chance = self.collection, self.chance
        return Draft(
            cohort=chance.randrange(collection.cohorts),
            fingerprint=collection.fingerprint,
            window_start=collection.window_start(time.time()),
            width=collection.width,
            pack_id=chance.randbytes(16),
            payload=chance.choice(self._payloads),
            mechanism=1 if self.krr else 2,
        )

    def _payload(self) -> bytes:
        width = self.collection.width
        if not self.krr:
            return self.chance.randbytes(REPORTS * width // 8)
        size = "<u1" if width <= 1 << 8 else "<u2" if width <= 1 << 16 else "<u4"
        return np.array([self.chance.randrange(width) for _ in range(REPORTS)], size).tobytes()


def _misrouted(draft: Draft) -> bytes:
    low = int.from_bytes(draft.pack_id[:8], "little") ^ 1
    return replace(draft, pack_id=low.to_bytes(8, "little") + draft.pack_id[8:]).encode()


def _flipped(draft: Draft) -> bytes:
    data = bytearray(draft.encode())
    data[-1] ^= 1
    return bytes(data)


#: How to invalidate a pack of k-RR with at most 256 buckets, or of RAPPOR, for which any payload of the right
#: size is valid. The record is still sent to the partition of its original id.
SPOILED: tuple[Callable[[Draft], bytes | None], ...] = (
    lambda draft: None,
    lambda draft: b"",
    lambda draft: b"no pack at all",
    lambda draft: replace(draft, magic=b"DNBK").encode(),
    lambda draft: draft.encode()[:40],
    lambda draft: draft.encode()[:-3],
    lambda draft: draft.encode() + b"more",
    _flipped,
    lambda draft: replace(draft, reports=0, payload=b"").encode(),
    lambda draft: replace(draft, reports=REPORTS + 1).encode(),
    lambda draft: replace(draft, mechanism=9).encode(),
    lambda draft: replace(draft, mechanism=3).encode(),
    lambda draft: replace(draft, width=draft.width - 1).encode(),
    lambda draft: replace(draft, window_start=draft.window_start + 1).encode(),
    lambda draft: replace(draft, window_start=1 << 62).encode(),
    lambda draft: replace(draft, version=2).encode(),
    lambda draft: replace(draft, fingerprint=draft.fingerprint ^ 1).encode(),
    lambda draft: replace(draft, cohort=9).encode(),
    lambda draft: replace(draft, payload=b"\xff" * len(draft.payload)).encode(),
    lambda draft: replace(draft, window_start=draft.window_start + 86_400).encode(),
    lambda draft: replace(draft, window_start=draft.window_start - 86_400).encode(),
    _misrouted,
)


def oversized() -> bytes:
    """Return a record that is too large for a pack, but not for the broker."""
    return b"DNBL\x01" + bytes(1_000_000)
