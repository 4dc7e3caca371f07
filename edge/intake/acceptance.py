"""Which groups of an upload are taken, and what is written of it. Pure.

Rule 1: a group is taken or rejected whole, for one reason; groups of one upload do not affect each other.
Rule 2: if some groups are bad, what is written is an upload with the same id and the good groups. It depends
on the upload alone, but for windows that begin or end meanwhile, so a repeated one has the same bytes.
Rule 3: relays check again, by append time. What is checked here spares devices the wait for a window that
will not count their reports.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

import numpy as np
from crc32c import crc32c

from deniable.estimators.collection import Collection
from deniable.protocol.uploads.upload import (
    CRC_BYTES,
    GROUP_BYTES,
    HEADER_BYTES,
    MAGIC,
    MAX_UPLOAD_BYTES,
    VERSION,
    Upload,
    UploadGroup,
    decode_upload,
    encode_upload,
)
from deniable.protocol.wire import EARLY_SECONDS, RAPPOR_NUMBER, bucket_dtype, report_bytes

_ONE_GROUP = Struct("<4sBH16sQBHQII")
_CRC = Struct("<I")
_ONE_GROUP_BYTES = HEADER_BYTES + GROUP_BYTES


@dataclass(frozen=True, slots=True)
class GroupTerms:
    """What groups of one collection must look like.

    Parameters
    ----------
    mechanism, width, size : number, width and bytes of one report, as on the wire.
    cohorts : their number.
    window_seconds : length of a window.
    taken_seconds : time from a window's start to the end of its intake grace.
    is_bounded : whether a report's bytes can be a bucket that does not exist.
    """

    mechanism: int
    width: int
    size: int
    cohorts: int
    window_seconds: int
    taken_seconds: int
    is_bounded: bool


def group_terms(collections: Iterable[Collection], delivery_seconds: float) -> dict[int, GroupTerms]:
    """Return the terms of each collection, by fingerprint.

    Parameters
    ----------
    collections : of the deployment, canaries included.
    delivery_seconds : by which a window takes uploads for less time than its grace, >= 0.
    """
    found = {}
    for each in collections:
        number, width = each.mechanism.wire_number, each.width
        most = 1 << 8 * bucket_dtype(width).itemsize
        found[each.fingerprint] = GroupTerms(
            number,
            width,
            report_bytes(number, width),
            each.cohorts,
            each.window_seconds,
            int(each.window_seconds + each.grace_seconds - delivery_seconds),
            number != RAPPOR_NUMBER and width < most,
        )
    return found


class CheckedUpload(NamedTuple):
    """What is taken of an upload.

    Parameters
    ----------
    upload_id : its id.
    taken : bytes of the upload to write; empty if all groups are bad.
    groups, reports : taken, their numbers.
    rejected : index and reason of each bad group.
    """

    upload_id: bytes
    taken: bytes
    groups: int
    reports: int
    rejected: tuple[tuple[int, str], ...] = ()

    @property
    def is_outdated(self) -> bool:
        """Whether nothing is taken, and the device does not have the present collections."""
        return not self.taken and any(reason == "unknown_collection" for _, reason in self.rejected)


def check_upload(body: bytes, terms: Mapping[int, GroupTerms], now: float) -> CheckedUpload:
    """Check one upload.

    Parameters
    ----------
    body : as sent.
    terms : of the collections, by fingerprint.
    now : this machine's clock, unix seconds.

    Raises
    ------
    UploadError, and nothing else, whatever the bytes are.
    """
    return check_one_group(body, terms, now) or check_groups(body, terms, now)


def check_one_group(body: bytes, terms: Mapping[int, GroupTerms], now: float) -> CheckedUpload | None:
    """Check an upload of one good group in one step; None if it is anything else."""
    end = len(body) - CRC_BYTES
    if not _ONE_GROUP_BYTES < end <= MAX_UPLOAD_BYTES - CRC_BYTES:
        return None
    magic, version, count, upload_id, fingerprint, mechanism, cohort, start, reports, width = (
        _ONE_GROUP.unpack_from(body)
    )
    found = terms.get(fingerprint)
    is_good = (
        found is not None
        and magic == MAGIC
        and version == VERSION
        and count == 1
        and mechanism == found.mechanism
        and width == found.width
        and reports * found.size == end - _ONE_GROUP_BYTES
        and cohort < found.cohorts
        and start % found.window_seconds == 0
        and now - found.taken_seconds <= start <= now + EARLY_SECONDS
        and _CRC.unpack_from(body, end)[0] == crc32c(body[:end])  # a copy is faster than a view
        and not (found.is_bounded and _exceeds(body[_ONE_GROUP_BYTES:end], found))
    )
    return CheckedUpload(upload_id, body, 1, reports, ()) if is_good else None


def check_groups(body: bytes, terms: Mapping[int, GroupTerms], now: float) -> CheckedUpload:
    """Check any upload in full; UploadError like `check_upload`."""
    upload = decode_upload(body)
    reasons = [_reason(group, terms, now) for group in upload.groups]
    good = tuple(group for group, reason in zip(upload.groups, reasons, strict=True) if reason is None)
    rejected = tuple((index, reason) for index, reason in enumerate(reasons) if reason is not None)
    taken = b""
    if good:
        taken = body if not rejected else encode_upload(Upload(upload.upload_id, good))
    return CheckedUpload(upload.upload_id, taken, len(good), sum(each.reports for each in good), rejected)


def _reason(group: UploadGroup, terms: Mapping[int, GroupTerms], now: float) -> str | None:
    found = terms.get(group.fingerprint)
    if found is None:
        return "unknown_collection"
    is_other = (group.mechanism, group.width) != (found.mechanism, found.width)
    if is_other or group.window_start % found.window_seconds:
        return "malformed"
    if group.cohort >= found.cohorts:
        return "bad_cohort"
    if group.window_start > now + EARLY_SECONDS:
        return "too_early"
    if now > group.window_start + found.taken_seconds:
        return "too_late"
    return "bad_value" if found.is_bounded and _exceeds(group.rows, found) else None


def _exceeds(rows: bytes | memoryview, terms: GroupTerms) -> bool:
    """Whether a bucket is not below the number of buckets."""
    if len(rows) == 1:
        return rows[0] >= terms.width
    return bool((np.frombuffer(rows, bucket_dtype(terms.width)) >= terms.width).any())
