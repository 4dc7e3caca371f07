"""Which packs of a run plainly count: what `Acceptance` accepts, for all packs at once.

A pack is good only if neither its checks nor those of any other record of the stretch depend on their order:
its id is unique there, and its window has room for all of them. All others are left to `Acceptance`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.acceptance import NONE_SEEN
from deniable.aggregator.ledger.pack_ids import FEW_IDS, ID_BYTES, PackIds, joined
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.runs.pack_columns import PackColumns, decoded
from deniable.aggregator.ledger.runs.run import Integers, Run
from deniable.aggregator.ledger.runs.run_windows import RunWindows, windows_of
from deniable.aggregator.ledger.terms import Terms
from deniable.protocol import wire
from deniable.protocol.uploads.id_set import Halves


@dataclass(frozen=True)
class RunPacks:
    """The m decoded packs of a run, checked as far as nothing but terms and times decide.

    Parameters
    ----------
    run : of the packs.
    columns : their headers.
    windows : their windows.
    fits : bool (m,); False if the pack must be left to `Acceptance`.
    """

    run: Run
    columns: PackColumns
    windows: RunWindows
    fits: npt.NDArray[np.bool_]


def packs_of(run: Run, terms: Mapping[int, Terms], partition: int, partitions: int) -> RunPacks:
    """Decode a run and check it; parameters : see `Acceptance`."""
    columns = decoded(run)
    heads, windows = columns.heads, windows_of(columns.heads, terms)
    of_pack, offsets = windows.of_pack, run.offsets[columns.numbers]
    early_ms = run.append_ms[columns.numbers] + wire.EARLY_SECONDS * 1000
    fits = (
        (heads["mechanism"] == windows.mechanism[of_pack])
        & (heads["width"] == windows.width[of_pack])
        & (heads["cohort"] < windows.cohorts[of_pack])
        & (windows.since[of_pack] <= offsets)
        & (offsets < windows.until[of_pack])
        & (heads["low"] % np.uint64(partitions) == partition)
        & (heads["window_start"].astype(np.int64) * 1000 <= early_ms)
    )
    return RunPacks(run, columns, windows, fits)


def stretches(packs: RunPacks, closed_ms: Integers, ends_ms: Integers) -> Iterator[tuple[int, int]]:
    """Bounds of stretches of the run within which no window closes or dies.

    Parameters
    ----------
    packs : of the run.
    closed_ms : int64 (n,), until when windows are closed at each record, ascending.
    ends_ms : when windows of the ledger close or die; those of the packs' own windows are added.
    """
    first_ms, last_ms = closed_ms[0], closed_ms[-1]
    ends = np.concatenate((ends_ms, packs.windows.closes_ms, packs.windows.dies_ms))
    passed = np.unique(ends[(ends >= first_ms) & (ends < last_ms)])
    # A window has ended for the records for which windows are closed beyond its end.
    bounds = [0, *closed_ms.searchsorted(passed, "right").tolist(), len(closed_ms)]
    return ((first, end) for first, end in pairwise(bounds) if first < end)


def good_packs(
    packs: RunPacks, closed_ms: Integers, first: int, end: int, seen: Mapping[Window, PackIds]
) -> Integers:
    """Numbers of the good packs of a stretch, in no particular order.

    Parameters
    ----------
    packs : of the run.
    closed_ms : see `stretches`.
    first, end : bounds of the stretch.
    seen : ids counted before it, by window.
    """
    columns, windows = packs.columns, packs.windows
    begin, stop = columns.numbers.searchsorted((first, end)).tolist()
    heads, of_pack = columns.heads[begin:stop], windows.of_pack[begin:stop]
    in_time = closed_ms[columns.numbers[begin:stop]] <= windows.closes_ms[of_pack]
    order = _by_window_and_id(of_pack, heads["low"])
    fits, of_pack, low = (packs.fits[begin:stop] & in_time)[order], of_pack[order], heads["low"][order]
    twins = np.flatnonzero((low[1:] == low[:-1]) & (of_pack[1:] == of_pack[:-1]))
    fits[twins] = fits[twins + 1] = False
    numbers, high = order + begin, heads["high"][order]
    pack_ids, room = joined(low, high), windows.room.tolist()
    for window, first, end in _places(of_pack):
        ids = seen.get(windows.windows[window], NONE_SEEN)
        if len(ids) + end - first > room[window]:
            fits[first:end] = False
        elif not ids:
            continue
        elif end - first > FEW_IDS:
            fits[first:end] &= ~ids.holds(low[first:end], high[first:end])
        else:
            for number in range(first, end):
                if pack_ids[ID_BYTES * number : ID_BYTES * (number + 1)] in ids:
                    fits[number] = False
    good: Integers = numbers[fits]
    return good


def new_ids(packs: RunPacks, good: Integers) -> Iterator[tuple[Window, bytes, Halves, Halves]]:
    """The ids of these packs by window: one behind the other, and their halves, the first ascending."""
    heads, of_pack = packs.columns.heads[good], packs.windows.of_pack[good]
    order = _by_window_and_id(of_pack, heads["low"])
    low, high = heads["low"][order], heads["high"][order]
    pack_ids = joined(low, high)
    for window, first, end in _places(of_pack[order]):
        ids = pack_ids[ID_BYTES * first : ID_BYTES * end]
        yield packs.windows.windows[window], ids, low[first:end], high[first:end]


def _by_window_and_id(of_pack: Integers, low: npt.NDArray[np.uint64]) -> Integers:
    order = low.argsort(kind="stable")
    if len(of_pack) and of_pack.min() != of_pack.max():
        order = order[of_pack[order].argsort(kind="stable")]
    return order


def _places(of_pack: Integers) -> Iterator[tuple[int, int, int]]:
    """The windows in `of_pack`, ascending, with the bounds of each."""
    bounds = [0, *(np.flatnonzero(np.diff(of_pack)) + 1).tolist(), len(of_pack)]
    for first, end in pairwise(bounds):
        if first < end:
            yield int(of_pack[first]), first, end
