"""Good packs by tally, their payloads side by side, so that the reports of many packs are counted at once."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.counting.bit_counting import count_bits_of_groups, count_bits_of_packs
from deniable.aggregator.ledger.counting.counts import Counts
from deniable.aggregator.ledger.counting.tally import TallyKey
from deniable.aggregator.ledger.runs.good_packs import RunPacks
from deniable.aggregator.ledger.runs.pack_columns import slices
from deniable.aggregator.ledger.runs.run import Integers
from deniable.protocol import wire

COPIED_BYTES = 4096  # of a payload, up to which copies of equal length are taken by an index
MOST_DENSE = 4  # counters for each report, up to which all tallies are counted in one array
DENSE_COUNTERS = 1 << 16  # or this many
LARGE_REPORTS = 256  # of a pack, from which on packs are counted one beside the other


@dataclass(frozen=True)
class TallyGroups:
    """The t tallies of packs of one mechanism and width.

    Parameters
    ----------
    mechanism, width : of all packs.
    good : int64 (m,), numbers of the packs in their `RunPacks`, by tally.
    keys : of the t tallies.
    bounds : int64 (t + 1,), of the tallies' packs in `good`.
    row_bounds : int64 (t + 1,), of the tallies' reports in `rows`.
    rows : all reports, uint8 (n, bits / 8) or buckets (n,).
    """

    mechanism: int
    width: int
    good: Integers
    keys: list[TallyKey]
    bounds: Integers
    row_bounds: Integers
    rows: npt.NDArray[np.unsignedinteger]


def tally_groups(packs: RunPacks, good: Integers) -> Iterator[TallyGroups]:
    """Group packs by number, and drop those with a bucket that has no counter."""
    windows = packs.windows
    kinds = (windows.width << 8) | (windows.mechanism & 0xFF)
    of_good = kinds[windows.of_pack[good]]
    for kind in np.unique(of_good).tolist():
        groups = _grouped(packs, good[of_good == kind], kind & 0xFF, kind >> 8)
        if groups.mechanism != wire.RAPPOR_NUMBER:
            beyond = groups.rows >= groups.width
            if beyond.any():
                reports = packs.columns.heads["reports"][groups.good]
                bad = np.unique(np.arange(len(reports)).repeat(reports)[beyond])
                groups = _grouped(packs, np.delete(groups.good, bad), groups.mechanism, groups.width)
        yield groups


def add(groups: TallyGroups, counts: Counts) -> None:
    """Count all packs of the groups."""
    reports, packs = np.diff(groups.row_bounds).tolist(), np.diff(groups.bounds).tolist()
    many = len(groups.rows) * MOST_DENSE + DENSE_COUNTERS < len(groups.keys) * groups.width
    if groups.mechanism != wire.RAPPOR_NUMBER and many:
        places = pairwise(groups.row_bounds.tolist())
        for key, number, (first, end) in zip(groups.keys, packs, places, strict=True):
            counts.changing(key, groups.width).add_buckets(groups.rows[first:end], number)
        return
    for key, counted, number, of_key in zip(groups.keys, _dense(groups), packs, reports, strict=True):
        counts.changing(key, groups.width).add_counts(counted, of_key, number)


def _grouped(packs: RunPacks, good: Integers, mechanism: int, width: int) -> TallyGroups:
    columns, windows = packs.columns, packs.windows
    tally = (windows.of_pack[good] << 16) | columns.heads["cohort"][good]
    order = tally.argsort(kind="stable")
    good, tally = good[order], tally[order]
    firsts = np.flatnonzero(np.diff(tally, prepend=-1))
    bounds = np.append(firsts, len(good))
    keys = [(*windows.windows[each >> 16], each & 0xFFFF) for each in tally[firsts].tolist()]
    ends = np.append(0, columns.heads["reports"][good].cumsum(dtype=np.int64))
    payload = _payloads(packs, columns.numbers[good])
    if mechanism == wire.RAPPOR_NUMBER:
        rows: npt.NDArray[np.unsignedinteger] = payload.reshape(-1, width // 8)
    else:
        rows = payload.view(wire.bucket_dtype(width))
    return TallyGroups(mechanism, width, good, keys, bounds, ends[bounds], rows)


def _payloads(packs: RunPacks, numbers: Integers) -> npt.NDArray[np.uint8]:
    """The payloads of records, by number, one behind the other."""
    run = packs.run
    starts, lengths = run.starts[numbers] + wire.HEADER_BYTES, run.lengths[numbers] - wire.HEADER_BYTES
    if len(lengths) and lengths[0] <= COPIED_BYTES and (lengths == lengths[0]).all():
        return slices(run.data, starts, int(lengths[0])).reshape(-1)
    view = memoryview(run.data)
    bounds = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    return np.frombuffer(b"".join([view[start:end] for start, end in bounds]), np.uint8)


def _dense(groups: TallyGroups) -> npt.NDArray[np.int64]:
    """Counts of each tally, int64 (t, width)."""
    if groups.mechanism == wire.RAPPOR_NUMBER:
        return _counted_bits(groups)
    of_tally = np.arange(len(groups.keys)).repeat(np.diff(groups.row_bounds))
    counted = np.bincount(of_tally * groups.width + groups.rows, minlength=len(groups.keys) * groups.width)
    return counted.reshape(len(groups.keys), groups.width)


def _counted_bits(groups: TallyGroups) -> npt.NDArray[np.int64]:
    packs, reports = len(groups.good), len(groups.rows) // max(1, len(groups.good))
    if reports < LARGE_REPORTS or (np.diff(groups.row_bounds) != reports * np.diff(groups.bounds)).any():
        return count_bits_of_groups(groups.rows, groups.row_bounds)
    counted = count_bits_of_packs(groups.rows.reshape(packs, reports, -1))
    of_tallies: npt.NDArray[np.int64] = np.add.reduceat(counted, groups.bounds[:-1], axis=0)
    return of_tallies
