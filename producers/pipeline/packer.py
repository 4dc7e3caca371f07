"""Cut reports into packs: shuffled reports of one collection, window and cohort, sent together."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.estimators.collection import Collection
from deniable.producers.randomization.randomness import Words
from deniable.protocol.secrets.order import random_order
from deniable.protocol.wire import (
    HEADER_BYTES,
    MAX_RECORD_BYTES,
    PACK_ID_BYTES,
    Pack,
    encode,
    report_bytes,
)

UNSEALED = bytes(PACK_ID_BYTES)


class BufferKey(NamedTuple):
    """The fields that all reports of a pack share."""

    fingerprint: int
    window_start: int
    cohort: int


@dataclass(frozen=True)
class Buffer:
    """Reports in the order of arrival, and when the first arrived."""

    reports: bytes
    born: float


@dataclass(frozen=True)
class _Kind:
    """The format of a collection's packs."""

    mechanism: int
    width: int
    report_bytes: int
    full_bytes: int


class Packer:
    """Buffers randomized reports and cuts them into packs. Not thread-safe; reads no clock.

    Packs contain reports in the order of arrival, shuffled within each pack.

    Parameters
    ----------
    collections : of the reports.
    pack_reports : reports of a full pack, at least 1; fewer if they would exceed most_bytes.
    pack_seconds : age at which a pack is sent although it is not full, seconds.
    words : random source of pack ids and shuffling.
    most_bytes : of the reports of a pack.
    """

    def __init__(
        self,
        collections: Iterable[Collection],
        pack_reports: int,
        pack_seconds: float,
        words: Words,
        most_bytes: int = MAX_RECORD_BYTES - HEADER_BYTES,
    ) -> None:
        self._kinds = {each.fingerprint: _kind_of(each, pack_reports, most_bytes) for each in collections}
        self._pack_seconds = pack_seconds
        self._words = words
        self._buffers: dict[BufferKey, Buffer] = {}
        self._changed: set[BufferKey] = set()

    def state(self) -> dict[BufferKey, Buffer]:
        """The buffered reports, for `restore`."""
        return dict(self._buffers)

    def restore(self, state: dict[BufferKey, Buffer]) -> None:
        """Restore an earlier `state`, undoing everything since."""
        self._buffers = state
        self._changed.clear()

    def add(
        self,
        fingerprint: int,
        windows: NDArray[np.int64],
        cohorts: NDArray[np.uint16],
        rows: NDArray[np.uint8],
        now: float,
    ) -> list[Pack]:
        """Buffer n reports; return the packs that they fill.

        Parameters
        ----------
        fingerprint : of the collection.
        windows : int64 (n,), window starts, unix seconds.
        cohorts : uint16 (n,).
        rows : uint8 (n, bytes of a report), randomized.
        now : seconds of any monotonic clock.
        """
        packs: list[Pack] = []
        full = self._kinds[fingerprint].full_bytes
        for window, cohort, part in _groups(windows, cohorts, rows):
            key = BufferKey(fingerprint, window, cohort)
            buffer = self._buffers.pop(key, Buffer(b"", now))
            reports = buffer.reports + part.tobytes()
            whole = len(reports) // full * full
            packs += self._packs(key, reports[:whole])
            if whole < len(reports):
                # Reports left after a full pack arrived just now.
                self._buffers[key] = Buffer(reports[whole:], now if whole else buffer.born)
            self._changed.add(key)
        return packs

    def due(self, now: float) -> list[Pack]:
        """Return packs that are not full, but whose first report has waited for pack_seconds."""
        keys = [key for key, buffer in self._buffers.items() if now - buffer.born >= self._pack_seconds]
        self._changed.update(keys)
        return [pack for key in keys for pack in self._packs(key, self._buffers.pop(key).reports)]

    def flush(self) -> list[Pack]:
        """Return all buffered reports as packs."""
        return self.due(math.inf)

    def changes(self) -> dict[BufferKey, bytes]:
        """Return each buffer changed since the last call, as a record for `seal`; empty if it is gone.

        A record describes its reports completely, so another producer can send them.
        """
        changed = {
            key: encode(self._pack(key, self._buffers[key].reports)) if key in self._buffers else b""
            for key in self._changed
        }
        self._changed.clear()
        return changed

    def _packs(self, key: BufferKey, reports: bytes) -> list[Pack]:
        size = self._kinds[key.fingerprint].full_bytes
        parts = (reports[start : start + size] for start in range(0, len(reports), size))
        return [seal(self._pack(key, part), self._words) for part in parts]

    def _pack(self, key: BufferKey, reports: bytes) -> Pack:
        kind = self._kinds[key.fingerprint]
        return Pack(
            mechanism=kind.mechanism,
            cohort=key.cohort,
            fingerprint=key.fingerprint,
            window_start=key.window_start,
            reports=len(reports) // kind.report_bytes,
            width=kind.width,
            pack_id=UNSEALED,
            payload=reports,
        )


def seal(pack: Pack, words: Words) -> Pack:
    """Return the same reports, shuffled, under a new id."""
    drawn = words.words64((PACK_ID_BYTES // 8 + pack.reports,))
    rows = np.frombuffer(pack.payload, np.uint8).reshape(pack.reports, -1)
    payload = rows.take(random_order(drawn[PACK_ID_BYTES // 8 :]), axis=0).tobytes()
    return replace(pack, pack_id=drawn[: PACK_ID_BYTES // 8].tobytes(), payload=payload)


def cut(buffered: Pack, most_bytes: int, words: Words) -> list[Pack]:
    """Seal the reports of a buffer as packs of at most most_bytes of reports each."""
    size = report_bytes(buffered.mechanism, buffered.width)
    most = most_bytes // size
    return [
        seal(
            replace(
                buffered,
                reports=min(most, buffered.reports - first),
                payload=buffered.payload[first * size : (first + most) * size],
            ),
            words,
        )
        for first in range(0, buffered.reports, most)
    ]


def _kind_of(collection: Collection, pack_reports: int, most_bytes: int) -> _Kind:
    mechanism = collection.mechanism.wire_number
    size = report_bytes(mechanism, collection.width)
    full = min(pack_reports, most_bytes // size) * size
    return _Kind(mechanism, collection.width, size, full)


def _groups(
    windows: NDArray[np.int64], cohorts: NDArray[np.uint16], rows: NDArray[np.uint8]
) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
    """Return each window and cohort that occurs, with the rows of its reports in the order of arrival."""
    if len(rows) == 0:
        return
    # There is almost always one window, and two bytes of cohort sort many times faster than window and
    # cohort.
    one_window = bool((windows == windows[0]).all())
    if one_window and (cohorts == cohorts[0]).all():
        yield int(windows[0]), int(cohorts[0]), rows
        return
    order = np.argsort(cohorts, kind="stable") if one_window else np.lexsort((cohorts, windows))
    cohorts, rows = cohorts.take(order), rows.take(order, axis=0)
    new = cohorts[1:] != cohorts[:-1]
    if not one_window:
        windows = windows.take(order)
        new |= windows[1:] != windows[:-1]
    starts = [0, *(np.flatnonzero(new) + 1).tolist()]
    for start, end in pairwise([*starts, len(rows)]):
        yield int(windows[start]), int(cohorts[start]), rows[start:end]
