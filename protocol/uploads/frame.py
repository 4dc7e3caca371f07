"""The frame: up to 256 uploads of one partition in one Kafka record.

Pure. An edge that sends a record for each upload spends 30 to 50 us on it; a frame spreads that over all
uploads that arrived together. Little-endian:

    0  4  magic "DNBF"    4  1  version = 1    5  2  number of uploads m    7  4·m  length of each
    …  the uploads

The lengths stand together, so a reader finds all uploads in one step, and each upload has its own checksum:
a damaged upload costs only itself. Whether the uploads decode is not checked here.
"""

from collections.abc import Sequence
from itertools import pairwise
from struct import Struct

import numpy as np
from numpy.typing import NDArray

from deniable.protocol.uploads.upload import UploadError
from deniable.protocol.wire import MALFORMED, MAX_RECORD_BYTES, OVERSIZED, UNSUPPORTED_VERSION

MAGIC = b"DNBF"
VERSION = 1
MAX_UPLOADS = 256
LENGTH_BYTES = 4
RESTATE_SECONDS = 300.0  # relays append the settings in force again, so that retention does not delete them

_HEADER = Struct("<4sBH")
FRAME_HEADER_BYTES = _HEADER.size


def encode_frame(uploads: Sequence[bytes]) -> bytes:
    """Encode one record of 1 to MAX_UPLOADS uploads, none of them empty.

    Raises
    ------
    UploadError with the reason for which `decode_frame` would refuse the record.
    """
    lengths = np.fromiter(map(len, uploads), "<u4", len(uploads))
    if not 1 <= len(uploads) <= MAX_UPLOADS or not lengths.all():
        raise UploadError(MALFORMED)
    head = _HEADER.pack(MAGIC, VERSION, len(uploads))
    record = b"".join((head, lengths.tobytes(), *uploads))
    if len(record) > MAX_RECORD_BYTES:
        raise UploadError(OVERSIZED)
    return record


def decode_frame(record: bytes | None) -> list[memoryview]:
    """Split one record into its uploads, views of it.

    Raises
    ------
    UploadError, and nothing else, whatever the bytes are.
    """
    if record is None:
        raise UploadError(MALFORMED)
    view = memoryview(record)
    return [view[start:end] for start, end in pairwise(upload_bounds(record).tolist())]


def upload_bounds(record: bytes) -> NDArray[np.int64]:
    """Return where each upload begins, and at last where the last one ends: int64 (m + 1,), ascending.

    Raises
    ------
    UploadError like `decode_frame`.
    """
    if len(record) > MAX_RECORD_BYTES:
        raise UploadError(OVERSIZED)
    if len(record) <= len(MAGIC) or record[:4] != MAGIC:
        raise UploadError(MALFORMED)
    if record[4] != VERSION:
        raise UploadError(UNSUPPORTED_VERSION)
    if len(record) < FRAME_HEADER_BYTES:
        raise UploadError(MALFORMED)
    count = _HEADER.unpack_from(record)[2]
    first = FRAME_HEADER_BYTES + LENGTH_BYTES * count
    if not 1 <= count <= MAX_UPLOADS or len(record) < first:
        raise UploadError(MALFORMED)
    lengths = np.frombuffer(record, "<u4", count, FRAME_HEADER_BYTES)
    bounds = np.empty(count + 1, np.int64)
    bounds[0] = first
    bounds[1:] = lengths
    bounds = bounds.cumsum()
    if not lengths.all() or bounds[-1] != len(record):
        raise UploadError(MALFORMED)
    return bounds
