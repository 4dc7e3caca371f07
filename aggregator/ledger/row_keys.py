"""Keys of the rows of the topics `state` and `counts`, and their bytes.

Little-endian. A key begins with one letter that names its kind; in `counts` the source partition (2 bytes)
follows the key, so that every partition's row of the same window stays its own.
"""

import struct
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from deniable.aggregator.ledger.row_values import RowError

Window = tuple[int, int]  # fingerprint, window start

_COUNT_KEY = struct.Struct("<cQqHI")
_IDS_KEY = struct.Struct("<cQqq")
_WINDOW_KEY = struct.Struct("<cQq")
_FINGERPRINT_KEY = struct.Struct("<cQ")
_SOURCE = struct.Struct("<H")


class CountKey(NamedTuple):
    """One page of the counters of a collection's window and cohort."""

    fingerprint: int
    window_start: int
    cohort: int
    page: int


class IdsKey(NamedTuple):
    """Pack ids of a window, of one checkpoint or several; `number` only makes the key unique."""

    fingerprint: int
    window_start: int
    number: int


class RejectedKey(NamedTuple):
    """Packs rejected for one reason; fingerprint and window are 0 for packs without a valid window."""

    fingerprint: int
    window_start: int
    reason: str


class PublishedKey(NamedTuple):
    """What was last published of a window: an estimate, or final counts."""

    fingerprint: int
    window_start: int


class TermsKey(NamedTuple):
    """Terms of a fingerprint."""

    fingerprint: int


@dataclass(frozen=True)
class KnownTextsKey:
    """Texts that growing has found in the windows of a fingerprint, in the ledger that estimates it.

    No tuple: as one it would equal the TermsKey of the fingerprint.
    """

    fingerprint: int


class SingleKey(Enum):
    """Rows that occur once in a ledger.

    GENESIS identifies the log it counts. OWNER holds a nonce of the last owner, by which a reader finds the
    end of the partition. PROGRESS holds how far the ledger has counted; REVISION, the revision of the
    collection file it was last opened with.
    """

    GENESIS = b"G"
    OWNER = b"O"
    PROGRESS = b"P"
    REVISION = b"V"


Key = CountKey | IdsKey | RejectedKey | PublishedKey | TermsKey | KnownTextsKey | SingleKey
Stored = tuple[Key, bytes]  # a row


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
        case TermsKey():
            return _FINGERPRINT_KEY.pack(b"T", *key)
        case KnownTextsKey():
            return _FINGERPRINT_KEY.pack(b"K", key.fingerprint)
        case SingleKey():
            return key.value


def decode_key(data: bytes) -> Key:
    """Inverse of `encode_key`; RowError if the bytes are not a key of this version."""
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
            case b"T":
                return TermsKey(*_FINGERPRINT_KEY.unpack(data)[1:])
            case b"K":
                return KnownTextsKey(*_FINGERPRINT_KEY.unpack(data)[1:])
            case b"G" | b"O" | b"P" | b"V":
                return SingleKey(data)
    except (struct.error, ValueError) as error:
        raise RowError(f"row key of {len(data)} bytes is damaged") from error
    raise RowError(f"row key of unknown kind ({len(data)} bytes); a newer version may have written it")


def with_source(key: bytes, source: int) -> bytes:
    """Key of a row in `counts`: the state key, then the source partition."""
    return key + _SOURCE.pack(source)


def is_foreign(data: bytes, sources: int) -> bool:
    """Whether another program wrote this key of `counts`: it belongs to none of the `sources`."""
    try:
        _, source = split_source(data)
    except RowError:
        return True
    return source >= sources


def split_source(data: bytes) -> tuple[Key, int]:
    """Inverse of `with_source`."""
    if len(data) <= _SOURCE.size:
        raise RowError(f"counts key of {len(data)} bytes is damaged")
    return decode_key(data[: -_SOURCE.size]), _SOURCE.unpack(data[-_SOURCE.size :])[0]
