"""Packs: reports of one collection, window and cohort, shuffled, that leave together."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from estimators.collection import Collection
from producers.randomness import Words
from producers.wire import HEADER_BYTES, MAX_RECORD_BYTES, PACK_ID_BYTES, Pack, mechanism_number, report_bytes

Key = tuple[str, int, int]


@dataclass
class _Buffer:
    reports: bytearray
    born: float


class Packer:
    """Buffers randomized reports and cuts them into packs. Not thread-safe; reads no clock.

    Parameters
    ----------
    collections : by name.
    pack_reports : reports of a full pack, at least 1; fewer where they would pass MAX_RECORD_BYTES.
    pack_seconds : age at which a pack leaves although it is not full, seconds.
    words : source of the pack ids and of the shuffling.
    """

    def __init__(
        self, collections: Mapping[str, Collection], pack_reports: int, pack_seconds: float, words: Words
    ) -> None:
        self._collections = collections
        self._pack_reports = pack_reports
        self._pack_seconds = pack_seconds
        self._words = words
        self._buffers: dict[Key, _Buffer] = {}

    def add(
        self,
        name: str,
        windows: NDArray[np.int64],
        cohorts: NDArray[np.uint16],
        rows: NDArray[np.uint8],
        now: float,
    ) -> list[Pack]:
        """Take n reports; returns the packs that they filled.

        Parameters
        ----------
        name : of the collection.
        windows : int64 (n,), window starts, unix seconds.
        cohorts : uint16 (n,).
        rows : uint8 (n, bytes of a report), randomized.
        now : seconds of any steady clock.
        """
        packs: list[Pack] = []
        for window, cohort, part in _groups(windows, cohorts):
            key = (name, window, cohort)
            buffer = self._buffers.setdefault(key, _Buffer(bytearray(), now))
            buffer.reports += rows[part].tobytes()
            size = self._full_bytes(name)
            whole = len(buffer.reports) // size * size
            if whole:
                packs += self._packs(key, bytes(buffer.reports[:whole]))
                # Reports leave in the order of their coming, so those that stay came just now.
                self._keep(key, buffer.reports[whole:], now)
        return packs

    def due(self, now: float) -> list[Pack]:
        """Packs, not full ones, whose first report has waited for pack_seconds."""
        keys = [key for key, buffer in self._buffers.items() if now - buffer.born >= self._pack_seconds]
        return [pack for key in keys for pack in self._packs(key, bytes(self._buffers.pop(key).reports))]

    def flush(self) -> list[Pack]:
        """All that is buffered."""
        return self.due(math.inf)

    def _keep(self, key: Key, reports: bytearray, now: float) -> None:
        if reports:
            self._buffers[key] = _Buffer(reports, now)
        else:
            del self._buffers[key]

    def _full_bytes(self, name: str) -> int:
        size = _report_bytes(self._collections[name])
        return min(self._pack_reports, (MAX_RECORD_BYTES - HEADER_BYTES) // size) * size

    def _packs(self, key: Key, reports: bytes) -> list[Pack]:
        size = self._full_bytes(key[0])
        return [self._pack(key, reports[start : start + size]) for start in range(0, len(reports), size)]

    def _pack(self, key: Key, reports: bytes) -> Pack:
        name, window, cohort = key
        collection = self._collections[name]
        rows = np.frombuffer(reports, np.uint8).reshape(-1, _report_bytes(collection))
        # Sorting by independent 64-bit words: every order is equally likely, but for ties, which one pair of
        # reports has with probability 2**-64.
        order = np.argsort(self._words.words64(len(rows)))
        return Pack(
            mechanism=mechanism_number(collection.mechanism),
            cohort=cohort,
            fingerprint=collection.fingerprint,
            window_start=window,
            reports=len(rows),
            width=collection.width,
            pack_id=self._words.words64(PACK_ID_BYTES // 8).tobytes(),
            payload=rows[order].tobytes(),
        )


def _report_bytes(collection: Collection) -> int:
    return report_bytes(mechanism_number(collection.mechanism), collection.width)


def _groups(
    windows: NDArray[np.int64], cohorts: NDArray[np.uint16]
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Each window and cohort that occurs, with the places of its reports in the order of their coming."""
    order = np.lexsort((cohorts, windows))
    new = (np.diff(windows[order]) != 0) | (np.diff(cohorts[order]) != 0)
    for places in np.split(order, np.flatnonzero(new) + 1) if len(order) else ():
        yield int(windows[places[0]]), int(cohorts[places[0]]), places
