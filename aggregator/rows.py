"""Rows of the topics `state` and `counts`: their keys, their values, their bytes.

Little-endian. A key begins with one letter that names its kind; in `counts` the source partition (2 bytes)
follows the key, so that every partition's row of the same window stays its own.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROW_VERSION = 1
PAGE_COUNTERS = 65536  # at most 512 KiB of 64-bit counters: a row stays below Kafka's 1 MiB
ID_BYTES = 16
IDS_PER_ROW = 32768

Window = tuple[int, int]  # fingerprint, window start

_COUNT_KEY = struct.Struct("<cQqHI")
_IDS_KEY = struct.Struct("<cQqq")
_WINDOW_KEY = struct.Struct("<cQq")
_COUNT_HEAD = struct.Struct("<BBQQ")
_PROGRESS = struct.Struct("<Bqqq")
_REJECTED = struct.Struct("<BQ")
_PUBLISHED = struct.Struct("<BQ?")
_SOURCE = struct.Struct("<H")


class RowError(ValueError):
    """A row of `state` or `counts` that this version cannot read."""


class CountKey(NamedTuple):
    """One page of the counters of a collection's window and cohort."""

    fingerprint: int
    window_start: int
    cohort: int
    page: int


class IdsKey(NamedTuple):
    """Pack ids that one checkpoint added to a window; `first_offset` only makes the key unique."""

    fingerprint: int
    window_start: int
    first_offset: int


class RejectedKey(NamedTuple):
    """Packs turned away for one reason; fingerprint and window are 0 where the pack cannot vouch for them."""

    fingerprint: int
    window_start: int
    reason: str


class PublishedKey(NamedTuple):
    """The newest estimate that was published of a window."""

    fingerprint: int
    window_start: int


class SingleKey(Enum):
    """Rows that a ledger has one of.

    OWNER holds a nonce of who opened the ledger last, so that reading knows the end of the partition;
    PROGRESS holds how far the ledger has counted.
    """

    OWNER = b"O"
    PROGRESS = b"P"


Key = CountKey | IdsKey | RejectedKey | PublishedKey | SingleKey


class Counters(NamedTuple):
    """Counts of one page. `counts`: int64 (n,); `reports` and `packs` of the whole row, on each page."""

    reports: int
    packs: int
    counts: npt.NDArray[np.int64]


class Published(NamedTuple):
    """Revision (packs merged) and finality of the newest published estimate."""

    revision: int
    final: bool


@dataclass(frozen=True)
class Progress:
    """How far a ledger has come.

    Parameters
    ----------
    position : next offset of `reports` to count.
    watermark_ms : W, the highest append time counted so far, unix milliseconds.
    closed_until_ms : no report with an earlier append time is still to come, unix milliseconds.
    """

    position: int = 0
    watermark_ms: int = 0
    closed_until_ms: int = 0


def encode_key(key: Key) -> bytes:
    """Bytes of a key."""
    match key:
        case CountKey():
            return _COUNT_KEY.pack(b"C", *key)
        case IdsKey():
            return _IDS_KEY.pack(b"I", *key)
        case RejectedKey():
            return _WINDOW_KEY.pack(b"R", key.fingerprint, key.window_start) + key.reason.encode()
        case PublishedKey():
            return _WINDOW_KEY.pack(b"E", *key)
        case SingleKey():
            return key.value


def decode_key(data: bytes) -> Key:
    """Inverse of `encode_key`; RowError when the bytes are no key of this version."""
    try:
        match data[:1]:
            case b"C":
                return CountKey(*_COUNT_KEY.unpack(data)[1:])
            case b"I":
                return IdsKey(*_IDS_KEY.unpack(data)[1:])
            case b"R":
                _, fingerprint, window_start = _WINDOW_KEY.unpack_from(data)
                return RejectedKey(fingerprint, window_start, data[_WINDOW_KEY.size :].decode())
            case b"E":
                return PublishedKey(*_WINDOW_KEY.unpack(data)[1:])
            case b"O" | b"P":
                return SingleKey(data)
    except (struct.error, ValueError) as error:
        raise RowError(f"row key of {len(data)} bytes is damaged") from error
    raise RowError(f"row key of unknown kind ({len(data)} bytes); a newer version may have written it")


def with_source(key: bytes, source: int) -> bytes:
    """Key of a row in `counts`: the state key and the source partition that counted it."""
    return key + _SOURCE.pack(source)


def split_source(data: bytes) -> tuple[Key, int]:
    """Inverse of `with_source`."""
    if len(data) <= _SOURCE.size:
        raise RowError(f"counts key of {len(data)} bytes is damaged")
    return decode_key(data[: -_SOURCE.size]), _SOURCE.unpack(data[-_SOURCE.size :])[0]


def encode_counters(counters: Counters) -> bytes:
    """Counters in the narrowest unsigned integers that hold them."""
    highest = int(counters.counts.max(initial=0))
    size = 1 if highest < 1 << 8 else 2 if highest < 1 << 16 else 4 if highest < 1 << 32 else 8
    head = _COUNT_HEAD.pack(ROW_VERSION, size, counters.reports, counters.packs)
    return head + counters.counts.astype(f"<u{size}").tobytes()


def decode_counters(data: bytes) -> Counters:
    """Inverse of `encode_counters`."""
    version, size, reports, packs = _unpack(_COUNT_HEAD, data[: _COUNT_HEAD.size])
    _check_version(version)
    if max(reports, packs) >> 63 or size not in (1, 2, 4, 8) or (len(data) - _COUNT_HEAD.size) % size:
        raise RowError(f"counter row of {len(data)} bytes is damaged")
    counts = np.frombuffer(data, dtype=f"<u{size}", offset=_COUNT_HEAD.size).astype(np.int64)
    return Counters(reports, packs, counts)


def encode_progress(progress: Progress) -> bytes:
    """Bytes of a progress row."""
    return _PROGRESS.pack(ROW_VERSION, progress.position, progress.watermark_ms, progress.closed_until_ms)


def decode_progress(data: bytes) -> Progress:
    """Inverse of `encode_progress`."""
    version, *fields = _unpack(_PROGRESS, data)
    _check_version(version)
    return Progress(*fields)


def encode_rejected(packs: int) -> bytes:
    """Bytes of the number of packs that were turned away."""
    return _REJECTED.pack(ROW_VERSION, packs)


def decode_rejected(data: bytes) -> int:
    """Inverse of `encode_rejected`."""
    version, packs = _unpack(_REJECTED, data)
    _check_version(version)
    return int(packs)


def decode_ids(data: bytes) -> bytes:
    """Ids of a row, ID_BYTES each, in a row."""
    if len(data) % ID_BYTES:
        raise RowError(f"row of {len(data)} bytes is damaged, expected a multiple of {ID_BYTES}")
    return data


def encode_published(published: Published) -> bytes:
    """Bytes of what was published of a window."""
    return _PUBLISHED.pack(ROW_VERSION, *published)


def decode_published(data: bytes) -> Published:
    """Inverse of `encode_published`."""
    version, revision, final = _unpack(_PUBLISHED, data)
    _check_version(version)
    return Published(revision, bool(final))


def _unpack(layout: struct.Struct, data: bytes) -> tuple[int, ...]:
    try:
        return layout.unpack(data)
    except struct.error as error:
        raise RowError(f"row of {len(data)} bytes is damaged, expected {layout.size}") from error


def _check_version(version: int) -> None:
    if version != ROW_VERSION:
        raise RowError(f"row version must be {ROW_VERSION}, got {version}; a newer deniable wrote it")
