"""Records of `uploads` and `rejected-uploads`: what an edge with a defect, or anybody with its rights, adds.

Frames get right checksums in most mutations, which no mutation would hit otherwise.
"""

from collections import Counter
from itertools import pairwise

from crc32c import crc32c

from deniable.protocol.uploads.frame import decode_frame, upload_bounds
from deniable.protocol.uploads.upload import CRC_BYTES, UploadError, decode_upload
from deniable.relay.columns import decode_columns
from deniable.relay.control import ControlError, encode_marker, encode_settings, is_control, read_control
from deniable.relay.fold import Fold, Start
from deniable.relay.service.outcomes import OutcomeRecord, OutcomeRecordError, RejectedGroups, decode_outcomes
from tests.support.relay.logs import KEYS, LONG, PARTITION, SHORT, RandomLog, settings_of

SETTINGS = encode_settings(KEYS, PARTITION, settings_of(SHORT, LONG))
LOG = RandomLog(1).grow(60)
NOW_MS = LOG.records[len(LOG.records) // 2][1]
OUTCOMES = OutcomeRecord(PARTITION, 1, 9, (), (RejectedGroups("malformed", 1, 1),)).encode()
SEEDS = [
    *(value for _, _, value in LOG.records),
    SETTINGS,
    encode_marker(KEYS, PARTITION),
    OUTCOMES,
]
outcomes: Counter[str] = Counter()


def mutate(mutated: bytes, seed: int) -> bytes:
    """Give the uploads of most frames the right checksums."""
    try:
        bounds = upload_bounds(mutated).tolist()
    except UploadError:
        return mutated
    if seed % 8 == 0:
        return mutated
    found = bytearray(mutated)
    for first, end in pairwise(bounds):
        if end - first > CRC_BYTES:
            found[end - CRC_BYTES : end] = crc32c(bytes(found[first : end - CRC_BYTES])).to_bytes(4, "little")
    return bytes(found)


def check(data: bytes) -> None:
    """A relay counts or rejects every report, and refuses with declared errors alone."""
    _check_columns(data)
    _check_fold(data)
    try:
        read_control(data)
    except (ValueError, ControlError):
        outcomes["no control record"] += 1
    try:
        assert decode_outcomes(decode_outcomes(data).encode())
        outcomes["outcomes"] += 1
    except OutcomeRecordError:
        outcomes["no outcomes"] += 1


def _check_columns(data: bytes) -> None:
    """Arrays have what the decoder of single uploads finds."""
    try:
        groups, damaged = decode_columns(data)
    except UploadError as error:
        outcomes[error.reason] += 1
        return
    reports, reasons = 0, Counter[str]()
    for upload in decode_frame(data):
        try:
            reports += sum(group.reports for group in decode_upload(bytes(upload)).groups)
        except UploadError as error:
            reasons[error.reason] += 1
    assert int(groups.reports.sum()) == reports
    assert damaged == reasons
    outcomes["frame"] += 1


def _check_fold(data: bytes) -> None:
    fold = Fold(PARTITION, KEYS, Start(0))
    fold.apply(0, NOW_MS, SETTINGS)
    if is_control(data):
        try:
            fold.apply(1, NOW_MS, data)
        except ControlError:
            outcomes["control refused"] += 1
        return
    ended = [fold.apply(1, NOW_MS, data), fold.apply(2, NOW_MS, encode_marker(KEYS, PARTITION))]
    batches = [batch for batch in ended if batch is not None]
    end = fold.apply(3, NOW_MS + 10**12, encode_marker(KEYS, PARTITION))
    assert end is not None
    packed = sum(pack.reports for batch in (*batches, end) for pack in batch.packs(KEYS))
    accepted = sum(sum(batch.outcomes.reports.values()) for batch in batches)
    assert packed == accepted
    outcomes["accepted"] += accepted > 0
