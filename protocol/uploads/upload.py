"""The upload: randomized reports of one device, under an id that identifies a repeated upload.

Pure: bytes in, bytes out. Little-endian, 23 bytes of header, then 1 to 64 groups, then a checksum:

    0  4  magic "DNBU"    4  1  version = 1    5  2  number of groups     7 16  random upload id
    then for each group:
    0  8  fingerprint     8  1  mechanism      9  2  cohort              11  8  window start, unix seconds
    19 4  reports n      23  4  width         27 …  n rows, as in a pack
    last 4  CRC-32C of all bytes before it

Rule 1: an upload that a device repeats has the same bytes. A new id is drawn only for new reports.
Rule 2: the id's first 8 bytes modulo the number of partitions of `uploads` is the upload's partition, as for
packs, so an upload meets its repetition in one partition, whichever edge took it.

The checksum comes last, so one pass over one slice checks it. An upload has at most 65,536 bytes, which is
what browsers let all requests of a closing page carry together.
"""

from dataclasses import dataclass
from struct import Struct
from struct import error as StructError

from crc32c import crc32c

from deniable.estimators.errors import DeniableError
from deniable.protocol.wire import (
    MALFORMED,
    MAX_WINDOW_START,
    OVERSIZED,
    PACK_ID_BYTES,
    UNSUPPORTED_VERSION,
    report_bytes,
)

MAGIC = b"DNBU"
VERSION = 1
MAX_UPLOAD_BYTES = 65_536
MAX_GROUPS = 64
UPLOAD_ID_BYTES = PACK_ID_BYTES  # so that `wire.partition_of` applies to both

_HEADER = Struct("<4sBH16s")
_GROUP = Struct("<QBHQII")
_CRC = Struct("<I")
HEADER_BYTES = _HEADER.size
GROUP_BYTES = _GROUP.size
CRC_BYTES = _CRC.size


class UploadError(DeniableError, ValueError):
    """These bytes are no upload: malformed, unsupported_version or oversized; and which check failed."""

    def __str__(self) -> str:
        return ", ".join(map(str, self.args))

    @property
    def reason(self) -> str:
        """The reason, as counted in metrics."""
        return str(self.args[0])


@dataclass(frozen=True, slots=True)
class UploadGroup:
    """Reports of one collection, one window and one cohort.

    Parameters
    ----------
    fingerprint, mechanism, cohort, window_start, reports, width : as in a `wire.Pack`.
    rows : reports * report_bytes(mechanism, width) bytes.
    """

    fingerprint: int
    mechanism: int
    cohort: int
    window_start: int
    reports: int
    width: int
    rows: bytes | memoryview


@dataclass(frozen=True, slots=True)
class Upload:
    """One or more groups, under the id that was drawn for them.

    Parameters
    ----------
    upload_id : 16 random bytes.
    groups : 1 to MAX_GROUPS of them.
    """

    upload_id: bytes
    groups: tuple[UploadGroup, ...]


def encode_upload(upload: Upload) -> bytes:
    """Encode one upload.

    Raises
    ------
    UploadError with the reason for which `decode_upload` would refuse the bytes.
    """
    if not 1 <= len(upload.groups) <= MAX_GROUPS or len(upload.upload_id) != UPLOAD_ID_BYTES:
        raise UploadError(MALFORMED)
    parts: list[bytes | memoryview] = [_HEADER.pack(MAGIC, VERSION, len(upload.groups), upload.upload_id)]
    for group in upload.groups:
        parts += _encode_group(group)
    if sum(map(len, parts)) + CRC_BYTES > MAX_UPLOAD_BYTES:
        raise UploadError(OVERSIZED)
    body = b"".join(parts)
    return body + _CRC.pack(crc32c(body))


def _encode_group(group: UploadGroup) -> tuple[bytes, bytes | memoryview]:
    size = report_bytes(group.mechanism, group.width)
    numbers = (group.fingerprint, group.mechanism, group.cohort, group.window_start)
    is_right = size and group.reports and len(group.rows) == group.reports * size
    if not is_right or group.window_start > MAX_WINDOW_START:
        raise UploadError(MALFORMED)
    try:
        return _GROUP.pack(*numbers, group.reports, group.width), group.rows
    except StructError:
        raise UploadError(MALFORMED) from None


def decode_upload(data: bytes | memoryview) -> Upload:
    """Decode one upload; the caller checks the limits of its collections (cohort, bucket, window).

    The order of checks is fixed, so every reader gives the same reason: size; magic; version, since a later
    version may have another header; then everything else, as `malformed`. Rows are views of `data`.

    Raises
    ------
    UploadError, and nothing else, whatever the bytes are.
    """
    if len(data) > MAX_UPLOAD_BYTES:
        raise UploadError(OVERSIZED)
    if len(data) <= len(MAGIC) or data[:4] != MAGIC:
        raise UploadError(MALFORMED, "it does not begin like one")
    if data[4] != VERSION:
        raise UploadError(UNSUPPORTED_VERSION)
    end = len(data) - CRC_BYTES
    if end < HEADER_BYTES or _CRC.unpack_from(data, end)[0] != crc32c(memoryview(data)[:end]):
        raise UploadError(MALFORMED, "it is cut, or its checksum is wrong")
    _, _, count, upload_id = _HEADER.unpack_from(data)
    if not 1 <= count <= MAX_GROUPS:
        raise UploadError(MALFORMED, f"it must have 1 to {MAX_GROUPS} groups, got {count}")
    groups, place = [], HEADER_BYTES
    for _ in range(count):
        groups.append(_decode_group(memoryview(data)[place:end]))
        place += GROUP_BYTES + len(groups[-1].rows)
    if place != end:
        raise UploadError(MALFORMED, "bytes follow its last group")
    return Upload(upload_id, tuple(groups))


def _decode_group(data: memoryview) -> UploadGroup:
    """Decode the group at the beginning of `data`, which may be followed by others."""
    if len(data) < GROUP_BYTES:
        raise UploadError(MALFORMED, "it has fewer groups than it says")
    fingerprint, mechanism, cohort, window_start, reports, width = _GROUP.unpack_from(data)
    size = reports * report_bytes(mechanism, width)
    if not size:
        raise UploadError(MALFORMED, "a group has no reports, or no such mechanism and width exist")
    if window_start > MAX_WINDOW_START:
        raise UploadError(MALFORMED, f"a window must start at most at {MAX_WINDOW_START}")
    if len(data) < GROUP_BYTES + size:
        raise UploadError(MALFORMED, "a group has fewer rows than it says")
    rows = data[GROUP_BYTES : GROUP_BYTES + size]
    return UploadGroup(fingerprint, mechanism, cohort, window_start, reports, width, rows)
