"""The headers of a run's packs as one structured array: what `wire.decode` accepts, for all at once."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from crc32c import crc32c

from deniable.aggregator.ledger.runs.run import Integers, Run
from deniable.protocol import wire

COPIED_BYTES = 4096  # of a record, up to which one checksum of a copy is faster than two without
COPIED_AT_ONCE = 2**19  # of records
_MAGIC = int.from_bytes(wire.MAGIC, "little")


class PackColumns(NamedTuple):
    """The m packs of a run.

    Parameters
    ----------
    numbers : int64 (m,), of their records in the run, ascending.
    heads : wire.HEADER (m,).
    """

    numbers: Integers
    heads: npt.NDArray[np.void]


def decoded(run: Run) -> PackColumns:
    """The packs that `wire.decode` accepts, without those of versions that only it knows."""
    lengths = run.lengths
    numbers = np.flatnonzero((lengths >= wire.HEADER_BYTES) & (lengths <= wire.MAX_RECORD_BYTES))
    heads = slices(run.data, run.starts[numbers], wire.HEADER_BYTES).view(wire.HEADER).reshape(-1)
    reports = heads["reports"].astype(np.int64)
    sizes = wire.report_sizes(heads["mechanism"], heads["width"].astype(np.int64))
    fits = (
        (heads["magic"] == _MAGIC)
        & (heads["version"] == wire.VERSION)
        & (reports > 0)
        & (sizes > 0)
        & (reports * sizes == lengths[numbers] - wire.HEADER_BYTES)
        & (heads["window_start"] <= wire.MAX_WINDOW_START)
    )
    if not fits.all():
        numbers, heads = numbers[fits], heads[fits]
    whole = _checksums(run, numbers) == heads["crc"]
    if not whole.all():
        numbers, heads = numbers[whole], heads[whole]
    return PackColumns(numbers, heads)


def slices(data: bytes, starts: Integers, length: int) -> npt.NDArray[np.uint8]:
    """Copy `length` bytes from each start, uint8 (n, length)."""
    if not len(starts) or not length:
        return np.empty((len(starts), length), np.uint8)
    # All places of the data as overlapping items, of which some are taken.
    items: npt.NDArray[np.void] = np.ndarray((len(data) - length + 1,), f"V{length}", data, strides=(1,))
    return items[starts].view(np.uint8).reshape(-1, length)


def _checksums(run: Run, numbers: Integers) -> npt.NDArray[np.uint32]:
    """CRC-32C of the records without their own, uint32 (m,)."""
    starts, lengths = run.starts[numbers], run.lengths[numbers]
    if not len(numbers):
        return np.empty(0, np.uint32)
    length = int(lengths[0])
    if length <= COPIED_BYTES and (lengths == length).all():
        return _checksums_of_copies(run.data, starts, length)
    view, checked, header = memoryview(run.data), wire.CHECKED_BYTES, wire.HEADER_BYTES
    bounds = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    found = [
        crc32c(view[start + header : end], crc32c(view[start : start + checked])) for start, end in bounds
    ]
    return np.array(found, np.uint32)


def _checksums_of_copies(data: bytes, starts: Integers, length: int) -> npt.NDArray[np.uint32]:
    """For records of equal length: what a checksum covers is copied together, and summed in one call.

    COPIED_AT_ONCE bytes at a time: copies of a whole fetch would be most of the memory that counting needs.
    """
    found: list[int] = []
    step = max(1, COPIED_AT_ONCE // length)
    for first in range(0, len(starts), step):
        places = starts[first : first + step]
        checked = slices(data, places, wire.CHECKED_BYTES)
        payload = slices(data, places + wire.HEADER_BYTES, length - wire.HEADER_BYTES)
        copies = np.concatenate((checked, payload), axis=1)
        found += map(crc32c, copies.view(f"V{copies.shape[1]}").reshape(-1).tolist())
    return np.array(found, np.uint32)
