"""The pack: the only data that leaves a producer.

Pure: bytes in, bytes out. Little-endian, 52 bytes of header, then the reports:

    0  4  magic "DNBL"        4  1  version = 1      5  1  mechanism     6  2  cohort
    8  8  fingerprint        16  8  window start, unix seconds          24  4  reports n     28  4  width
    32 16 random pack id     48  4  CRC-32C of all but these four bytes 52 … payload

The payload is n unsigned integers of 1, 2 or 4 bytes (k-RR and longitudinal k-RR, width = k; k-RR of pairs,
width = K1 K2, first * K2 + second; local hashing, longitudinal or not, width = functions times buckets,
function * buckets + bucket; a prefix tree, the same, the cohort is the level; Square Wave, width = reported
cells) or n rows of width / 8 bytes, bit 0 lowest (RAPPOR of any kind, width = bits).
"""

from collections.abc import Callable
from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from deniable.estimators.errors import DeniableError

MAGIC = b"DNBL"
VERSION = 1  # of written packs
#: Forms of reports: the trait `wire_number` of mechanisms.
KRR_NUMBER = 1
RAPPOR_NUMBER = 2
LONGITUDINAL_KRR_NUMBER = 3
LOCAL_HASH_NUMBER = 4
LONGITUDINAL_HASH_NUMBER = 5
SQUARE_WAVE_NUMBER = 6
PAIR_NUMBER = 7
#: Mechanisms whose reports are buckets, with a counter for each.
BUCKET_NUMBERS = (
    KRR_NUMBER,
    LONGITUDINAL_KRR_NUMBER,
    LOCAL_HASH_NUMBER,
    LONGITUDINAL_HASH_NUMBER,
    SQUARE_WAVE_NUMBER,
    PAIR_NUMBER,
)

MAX_RECORD_BYTES = 1_000_000
PACK_ID_BYTES = 16
MAX_BUCKETS = 2**31
MAX_BITS = 4096
MAX_WINDOW_START = 253_402_300_799  # the last second of the year 9999
EARLY_SECONDS = 300  # a window may start so much after the append time: tolerance for producers' clocks

MALFORMED = "malformed"
UNSUPPORTED_VERSION = "unsupported_version"
OVERSIZED = "oversized"
#: Why an edge rejects a group of an upload.
GROUP_REASONS = ("unknown_collection", MALFORMED, "bad_cohort", "bad_value", "too_early", "too_late")

_CHECKED = Struct("<4sBBHQQII16s")
_HEADER = Struct("<4sBBHQQII16sI")
_CRC = Struct("<I")
HEADER_BYTES = _HEADER.size
CHECKED_BYTES = _CHECKED.size  # of the header, before its checksum
#: The same header for arrays; the id is two halves, which as numbers are compared and sorted faster.
HEADER = np.dtype(
    [
        ("magic", "<u4"),
        ("version", "u1"),
        ("mechanism", "u1"),
        ("cohort", "<u2"),
        ("fingerprint", "<u8"),
        ("window_start", "<u8"),
        ("reports", "<u4"),
        ("width", "<u4"),
        ("low", "<u8"),
        ("high", "<u8"),
        ("crc", "<u4"),
    ]
)


class WireError(DeniableError, ValueError):
    """These bytes are not a pack. The message is the reason: malformed, unsupported_version or oversized."""

    @property
    def reason(self) -> str:
        """The reason, as counted in metrics."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class Pack:
    """Reports of one collection, one window and one cohort.

    Parameters
    ----------
    mechanism : RAPPOR_NUMBER or one of BUCKET_NUMBERS.
    cohort : in [0, 65535].
    fingerprint : of the collection, unsigned 64-bit.
    window_start : unix seconds, in [0, MAX_WINDOW_START].
    reports : n, at least 1.
    width : k in [2, 2**31], or bits, a multiple of 8 in [8, 4096].
    pack_id : 16 random bytes, which identify a resent pack.
    payload : n * report_bytes(mechanism, width) bytes.
    """

    mechanism: int
    cohort: int
    fingerprint: int
    window_start: int
    reports: int
    width: int
    pack_id: bytes
    payload: bytes | memoryview


def bucket_dtype(k: int) -> np.dtype[np.unsignedinteger]:
    """Return the narrowest little-endian unsigned integer for k - 1: 1, 2 or 4 bytes."""
    return np.dtype("u1" if k <= 2**8 else "<u2" if k <= 2**16 else "<u4")


def report_bytes(mechanism: int, width: int) -> int:
    """Return the bytes of one report; 0 if no such mechanism or width exists."""
    if mechanism == RAPPOR_NUMBER:
        return width // 8 if 8 <= width <= MAX_BITS and width % 8 == 0 else 0
    if mechanism in BUCKET_NUMBERS and 2 <= width <= MAX_BUCKETS:
        return 1 if width <= 2**8 else 2 if width <= 2**16 else 4
    return 0


def report_sizes(mechanism: NDArray[np.uint8], width: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return `report_bytes` of each pair, int64 (n,)."""
    bits = (mechanism == RAPPOR_NUMBER) & (width >= 8) & (width <= MAX_BITS) & (width % 8 == 0)
    buckets = np.isin(mechanism, BUCKET_NUMBERS) & (width >= 2) & (width <= MAX_BUCKETS)
    bucket = 1 + (width > 2**8) + 2 * (width > 2**16)
    return np.where(bits, width // 8, np.where(buckets, bucket, 0))


def partition_of(pack_id: bytes, partitions: int) -> int:
    """Return the partition: the id's first 8 bytes, little-endian unsigned, modulo `partitions`."""
    return int.from_bytes(pack_id[:8], "little") % partitions


def _check(mechanism: int, width: int, reports: int, window_start: int, payload_bytes: int) -> None:
    size = report_bytes(mechanism, width)
    if not (size and reports and payload_bytes == reports * size and window_start <= MAX_WINDOW_START):
        raise WireError(MALFORMED)


def encode(pack: Pack) -> bytes:
    """Encode one Kafka record.

    Raises
    ------
    WireError with the reason for which `decode` would refuse the record.
    """
    if HEADER_BYTES + len(pack.payload) > MAX_RECORD_BYTES:
        raise WireError(OVERSIZED)
    _check(pack.mechanism, pack.width, pack.reports, pack.window_start, len(pack.payload))
    if len(pack.pack_id) != PACK_ID_BYTES:
        raise WireError(MALFORMED)
    numbers = (pack.mechanism, pack.cohort, pack.fingerprint, pack.window_start, pack.reports, pack.width)
    try:
        checked = _CHECKED.pack(MAGIC, VERSION, *numbers, pack.pack_id)
    except StructError:
        raise WireError(MALFORMED) from None
    return b"".join((checked, _CRC.pack(crc32c(pack.payload, crc32c(checked))), pack.payload))


def decode(record: bytes | None) -> Pack:
    """Decode one Kafka record; the caller checks the limits of its collection (cohort, bucket, window).

    The order of checks is fixed, so every reader gives the same reason: size; presence and magic; version,
    since a later version may have another header; then everything else, as `malformed`. A null value is
    malformed. The payload is a view of `record`, not a copy.

    Raises
    ------
    WireError, and nothing else, whatever the bytes are.
    """
    if record is None:
        raise WireError(MALFORMED)
    if len(record) > MAX_RECORD_BYTES:
        raise WireError(OVERSIZED)
    if len(record) <= len(MAGIC) or record[:4] != MAGIC:
        raise WireError(MALFORMED)
    decoder = DECODERS.get(record[4])
    if decoder is None:
        raise WireError(UNSUPPORTED_VERSION)
    return decoder(record)


def _decode_1(record: bytes) -> Pack:
    if len(record) < HEADER_BYTES:
        raise WireError(MALFORMED)
    payload = memoryview(record)[HEADER_BYTES:]
    _, _, mechanism, cohort, fingerprint, window_start, reports, width, pack_id, crc = _HEADER.unpack_from(
        record
    )
    if crc32c(payload, crc32c(record[: _CHECKED.size])) != crc:
        raise WireError(MALFORMED)
    _check(mechanism, width, reports, window_start, len(payload))
    return Pack(mechanism, cohort, fingerprint, window_start, reports, width, pack_id, payload)


# Decoders of all supported versions. A new version adds its own and keeps the former ones: packs of producers
# that are not upgraded yet count, and a replay reads a log with both.
DECODERS: dict[int, Callable[[bytes], Pack]] = {1: _decode_1}


def buckets(pack: Pack) -> NDArray[np.unsignedinteger]:
    """Return the buckets of a pack of BUCKET_NUMBERS: bucket_dtype(width) (n,), a view; not checked."""
    return np.frombuffer(pack.payload, bucket_dtype(pack.width))


def shown_reports(pack: Pack) -> list[int | str]:
    """Return the randomized reports for people: buckets, or the hexadecimal bits of each."""
    if pack.mechanism == RAPPOR_NUMBER:
        return [row.tobytes().hex() for row in bit_rows(pack)]
    found: list[int | str] = buckets(pack).tolist()
    return found


def bit_rows(pack: Pack) -> NDArray[np.uint8]:
    """Return the rows of a RAPPOR pack: uint8 (n, bits // 8), bit 0 lowest, a view."""
    return np.frombuffer(pack.payload, np.uint8).reshape(pack.reports, pack.width // 8)
