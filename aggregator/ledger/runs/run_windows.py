"""The windows of a run's packs, and the terms of each window as columns."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.runs.run import Integers
from deniable.aggregator.ledger.terms import Terms

NEVER = np.iinfo(np.int64).max
_NO_MECHANISM = -1  # of a window whose fingerprint is unknown
#: Odd, so that multiplication loses nothing. Anybody may choose windows that collide: those are told apart.
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


@dataclass(frozen=True)
class RunWindows:
    """The w windows of m packs.

    Parameters
    ----------
    windows : fingerprint and start of each.
    of_pack : int64 (m,), a pack's window by its number in `windows`.
    mechanism, width, cohorts, since, until, closes_ms, dies_ms, room : int64 (w,), by its terms. `mechanism`
        is none if it has no terms, or cannot be a window of theirs. `room` is how many packs it may hold.
    """

    windows: list[Window]
    of_pack: Integers
    mechanism: Integers
    width: Integers
    cohorts: Integers
    since: Integers
    until: Integers
    closes_ms: Integers
    dies_ms: Integers
    room: Integers


def windows_of(heads: npt.NDArray[np.void], terms: Mapping[int, Terms]) -> RunWindows:
    """The windows of packs with these headers, wire.HEADER (m,), under the terms by fingerprint."""
    fingerprints, starts = heads["fingerprint"], heads["window_start"]
    first, of_pack = _distinct(fingerprints, starts)
    windows = list(zip(fingerprints[first].tolist(), starts[first].tolist(), strict=True))
    rows = [_columns(terms.get(fingerprint), start) for fingerprint, start in windows]
    columns = np.array(rows, np.int64).reshape(-1, 8).T
    return RunWindows(windows, of_pack, *columns)


def _distinct(
    fingerprints: npt.NDArray[np.uint64], starts: npt.NDArray[np.uint64]
) -> tuple[Integers, Integers]:
    """Numbers of the first pack of each window, and each pack's window."""
    if not len(starts) or ((starts == starts[0]).all() and (fingerprints == fingerprints[0]).all()):
        return np.zeros(min(1, len(starts)), np.int64), np.zeros(len(starts), np.int64)
    mixed = (fingerprints * _MIX[0]) ^ (starts * _MIX[1])
    _, first, of_pack = np.unique(mixed, return_index=True, return_inverse=True)
    if (fingerprints != fingerprints[first][of_pack]).any() or (starts != starts[first][of_pack]).any():
        pairs = np.stack((fingerprints, starts), axis=1)
        _, first, of_pack = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    return first, of_pack


def _columns(terms: Terms | None, start: int) -> tuple[int, ...]:
    if terms is None or start % terms.window_seconds:
        return _NO_MECHANISM, 0, 0, 0, 0, 0, 0, 0
    until = NEVER if terms.until is None else terms.until
    closes_ms, dies_ms = terms.closes_at(start) * 1000, terms.dies_at(start) * 1000
    room = terms.span(start).window_packs
    return terms.mechanism, terms.width, terms.cohorts, terms.since, until, closes_ms, dies_ms, room
