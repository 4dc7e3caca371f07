"""The groups of a frame as arrays: what `decode_upload` returns, for up to 256 uploads at once. Pure.

Whatever is wrong with an upload is found here and named by `decode_upload`, so both give the same reason.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from deniable.protocol.uploads.frame import FRAME_HEADER_BYTES, upload_bounds
from deniable.protocol.uploads.upload import (
    CRC_BYTES,
    GROUP_BYTES,
    HEADER_BYTES,
    MAGIC,
    MAX_GROUPS,
    MAX_UPLOAD_BYTES,
    VERSION,
    UploadError,
    decode_upload,
)
from deniable.protocol.wire import MAX_WINDOW_START, report_sizes

_UPLOAD = np.dtype([("magic", "<u4"), ("version", "u1"), ("groups", "<u2"), ("low", "<u8"), ("high", "<u8")])
_CRC = np.dtype([("crc", "<u4")])
_GROUP = np.dtype(
    [
        ("fingerprint", "<u8"),
        ("mechanism", "u1"),
        ("cohort", "<u2"),
        ("window", "<u8"),
        ("reports", "<u4"),
        ("width", "<u4"),
    ]
)
_MAGIC = int.from_bytes(MAGIC, "little")
_LEAST_BYTES = HEADER_BYTES + GROUP_BYTES + 1 + CRC_BYTES


@dataclass(frozen=True)
class Groups:
    """Columns of m groups, each an array (m,).

    Parameters
    ----------
    data : uint8, the bytes that `first` refers to.
    upload : int64, number of the group's upload in its frame.
    low, high : uint64, the halves of the upload's id.
    fingerprint : uint64.
    mechanism : uint8.
    cohort : uint16.
    window, reports, width, size, first : int64; `size` is the bytes of a report, `first` where rows begin.
    """

    data: NDArray[np.uint8]
    upload: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    fingerprint: NDArray[np.uint64]
    mechanism: NDArray[np.uint8]
    cohort: NDArray[np.uint16]
    window: NDArray[np.int64]
    reports: NDArray[np.int64]
    width: NDArray[np.int64]
    size: NDArray[np.int64]
    first: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.upload)

    def take(self, chosen: NDArray[np.bool_] | NDArray[np.int64]) -> "Groups":
        """Return some of the groups."""
        columns = (value[chosen] for name, value in vars(self).items() if name != "data")
        return Groups(self.data, *columns)

    def rows(self) -> NDArray[np.uint8]:
        """Return the reports of all groups, uint8 (sum of reports, size), a copy; all must have one size."""
        size = int(self.size[0])
        if (self.reports == 1).all():
            starts = self.first
        else:
            # Report j of a group begins j * size after the group's first.
            before = self.reports.cumsum() - self.reports
            numbers = np.arange(int(self.reports.sum())) - before.repeat(self.reports)
            starts = self.first.repeat(self.reports) + numbers * size
        return self.data.take(starts[:, np.newaxis] + np.arange(size))


def decode_columns(record: bytes) -> tuple[Groups, Counter[str]]:
    """Decode a frame: the groups of its uploads, and the number of damaged uploads by reason.

    Raises
    ------
    UploadError if it is no frame.
    """
    bounds = upload_bounds(record)
    starts, ends = bounds[:-1], bounds[1:]
    data = np.frombuffer(record, np.uint8)
    is_right = _whole(record, starts, ends)
    heads = _gather(data, starts[is_right], _UPLOAD)
    is_right[is_right] = (heads["magic"] == _MAGIC) & (heads["version"] == VERSION)
    kept = np.flatnonzero(is_right)
    heads = _gather(data, starts[kept], _UPLOAD)
    found, fits = _groups(data, kept, heads, starts, ends - CRC_BYTES)
    is_right[kept] = fits
    damaged: Counter[str] = Counter()
    for place in np.flatnonzero(~is_right).tolist():
        damaged[_reason(record[starts[place] : ends[place]])] += 1
    return (found.take(is_right[found.upload]) if damaged else found), damaged


def uploads_in(record: bytes) -> int:
    """Return how many uploads a frame that decodes has."""
    return int.from_bytes(record[FRAME_HEADER_BYTES - 2 : FRAME_HEADER_BYTES], "little")


def _whole(record: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each upload has a possible length and the right checksum, bool (m,)."""
    lengths = ends - starts
    view = memoryview(record)
    bounds = zip(starts.tolist(), (ends - CRC_BYTES).tolist(), strict=True)
    sums = np.fromiter((crc32c(view[start:end]) for start, end in bounds), np.uint64, len(starts))
    stored = np.zeros(len(starts), np.uint64)
    possible = (lengths >= _LEAST_BYTES) & (lengths <= MAX_UPLOAD_BYTES)
    stored[possible] = _gather(np.frombuffer(record, np.uint8), ends[possible] - CRC_BYTES, _CRC)["crc"]
    possible &= sums == stored
    return possible


def _gather(data: NDArray[np.uint8], places: NDArray[np.int64], dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """Copy a structure from each place, dtype (m,)."""
    return data.take(places[:, np.newaxis] + np.arange(dtype.itemsize)).view(dtype).reshape(-1)


def _groups(
    data: NDArray[np.uint8],
    uploads: NDArray[np.int64],
    heads: NDArray[np.void],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> tuple[Groups, NDArray[np.bool_]]:
    """Find the first groups of all uploads, then the second groups of those that have one, and so on.

    Parameters
    ----------
    data : the record.
    uploads : numbers of the uploads with valid headers.
    heads : their headers.
    starts, ends : of all uploads of the record, without checksums.

    Returns
    -------
    The groups, and which of `uploads` consist of their header and whole groups alone, bool.
    """
    count = heads["groups"].astype(np.int64)
    fits = (count >= 1) & (count <= MAX_GROUPS)
    place, end = starts[uploads] + HEADER_BYTES, ends[uploads]
    parts, level = [_none(data)], 0
    while True:
        # Of uploads whose groups fitted so far, those with one more.
        here = np.flatnonzero(fits & (count > level))
        if not len(here):
            break
        short = place[here] + GROUP_BYTES > end[here]
        fits[here[short]] = False
        here = here[~short]
        group = _gather(data, place[here], _GROUP)
        size = report_sizes(group["mechanism"], group["width"].astype(np.int64))
        reports = group["reports"].astype(np.int64)
        first = place[here] + GROUP_BYTES
        place[here] = first + reports * size
        valid = (reports * size > 0) & (group["window"] <= MAX_WINDOW_START) & (place[here] <= end[here])
        fits[here[~valid]] = False
        found = Groups(
            data,
            upload=uploads[here],
            low=heads["low"][here],
            high=heads["high"][here],
            fingerprint=group["fingerprint"],
            mechanism=group["mechanism"],
            cohort=group["cohort"],
            window=group["window"].astype(np.int64),
            reports=reports,
            width=group["width"].astype(np.int64),
            size=size,
            first=first,
        )
        parts.append(found if valid.all() else found.take(valid))
        level += 1
    return _joined(data, parts), fits & (place == end)


def _none(data: NDArray[np.uint8]) -> Groups:
    words, numbers = np.empty(0, np.uint64), np.empty(0, np.int64)
    mechanism, cohort = np.empty(0, np.uint8), np.empty(0, np.uint16)
    halves, rest = (words, words), (numbers, numbers, numbers, numbers, numbers)
    return Groups(data, numbers, *halves, words, mechanism, cohort, *rest)


def _joined(data: NDArray[np.uint8], parts: list[Groups]) -> Groups:
    if len(parts) <= 2:
        return parts[-1]
    columns = [name for name in vars(parts[0]) if name != "data"]
    return Groups(data, *(np.concatenate([getattr(part, name) for part in parts]) for name in columns))


def _reason(upload: bytes) -> str:
    try:
        decode_upload(upload)
    except UploadError as error:
        return error.reason
    raise AssertionError("an upload that decodes was taken for a damaged one")
