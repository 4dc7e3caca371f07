"""The ledger of one partition of `reports`: a pure fold over the log, with what changed since last asked.

Rule 1: apply is called once for each record, in offset order; nothing else changes counts.
Rule 2: apply reads no clock and no file, so folding the same log under the same collections gives the same
ledger, integer for integer. `deniable replay` is that fold.
Rule 3: a drained change is never offered again. Who fails to store it throws the ledger away.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from aggregator import rows
from aggregator.acceptance import Acceptance, Accepted, Rejection
from aggregator.pack_ids import PackIds
from aggregator.rows import Window
from estimators.collection import Collection

Row = tuple[bytes, bytes | None]  # key and value of a topic's record; None deletes the key


class UnknownFingerprint(ValueError):
    """A stored row belongs to a collection that the collection file lacks."""


@dataclass
class Tally:
    """Counters of one window and cohort: reports, packs and int64 counts (width,)."""

    counts: npt.NDArray[np.int64]
    reports: int = 0
    packs: int = 0


@dataclass(frozen=True)
class Refusal:
    """A rejected record, as the topic `rejected` tells of it."""

    offset: int
    reason: str


@dataclass
class _Changes:
    tallies: set[tuple[int, int, int]] = field(default_factory=set)
    rejected: set[rows.RejectedKey] = field(default_factory=set)


class Ledger:
    """Exact counts of one partition, and what is needed to go on with them."""

    def __init__(self, acceptance: Acceptance) -> None:
        self.acceptance = acceptance
        self.position = 0
        self.watermark_ms = 0
        self.tallies: dict[tuple[int, int, int], Tally] = {}
        self.rejected: dict[rows.RejectedKey, int] = {}
        self.ids: dict[Window, PackIds] = {}
        self._new_ids: dict[Window, list[bytes]] = {}
        self._id_rows: dict[Window, list[int]] = {}  # the first_offset of each stored row of ids
        self._unstored = _Changes()
        self._unpublished = _Changes()
        self._tombstones: list[rows.Key] = []
        self._refusals: list[Refusal] = []
        self._closing: list[tuple[int, Window]] = []  # heap of (unix seconds, window): its ids die then
        self._dying: list[tuple[int, Window]] = []  # heap of (unix seconds, window): its counts die then
        self._known: set[Window] = set()

    def apply(self, offset: int, append_ms: int, record: bytes) -> Accepted | Rejection:
        """Count or reject the record at this offset, and move past it.

        Parameters
        ----------
        offset : its offset; the caller has made sure that no record lies between position and it.
        append_ms : its log append time, unix milliseconds.
        record : its value.

        Returns
        -------
        What became of it.
        """
        self.watermark_ms = max(self.watermark_ms, append_ms)
        self._expire()
        self.position = offset + 1
        try:
            accepted = self.acceptance.accept(record, append_ms, self.watermark_ms, self.ids)
        except Rejection as rejection:
            self._reject(offset, rejection)
            return rejection
        pack = accepted.pack
        window = (pack.fingerprint, pack.window_start)
        self._track(window)
        self.ids.setdefault(window, PackIds()).add(pack.pack_id)
        self._new_ids.setdefault(window, []).append(pack.pack_id)
        key = (*window, pack.cohort)
        tally = self.tallies.get(key)
        if tally is None:
            tally = self.tallies[key] = Tally(np.zeros(len(accepted.counts), dtype=np.int64))
        tally.counts += accepted.counts
        tally.reports += pack.reports
        tally.packs += 1
        self._unstored.tallies.add(key)
        self._unpublished.tallies.add(key)
        return accepted

    def drain(self) -> list[Row]:
        """Rows of `state` that changed since the last call, the progress row left out."""
        changed: list[Row] = [(rows.encode_key(key), None) for key in self._tombstones]
        changed += [(rows.encode_key(key), value) for key, value in self._changed(self._unstored)]
        changed += self._drain_ids()
        self._unstored, self._tombstones = _Changes(), []
        return changed

    def dead(self) -> list[rows.Key]:
        """Keys of counts and rejections that the next `drain` deletes: what must leave `counts` with it."""
        return [key for key in self._tombstones if not isinstance(key, rows.IdsKey)]

    def drain_unpublished(self) -> list[tuple[rows.Key, bytes]]:
        """Rows for `counts` that changed since the last call, without their source partition."""
        changed = list(self._changed(self._unpublished))
        self._unpublished = _Changes()
        return changed

    def drain_refusals(self) -> list[Refusal]:
        """What was rejected since the last call."""
        refusals, self._refusals = self._refusals, []
        return refusals

    def restore(self, stored: Iterable[tuple[rows.Key, bytes]]) -> None:
        """Take in stored rows; all of them count as not yet published.

        Raises
        ------
        UnknownFingerprint when a row belongs to no known collection; RowError when one cannot be read.
        """
        pages: dict[tuple[int, int, int], dict[int, rows.Counters]] = {}
        ids: dict[Window, list[bytes]] = {}
        for key, value in stored:
            check_known(key, self.acceptance.collections, self.acceptance.partition)
            match key:
                case rows.SingleKey.PROGRESS:
                    progress = rows.decode_progress(value)
                    self.position, self.watermark_ms = progress.position, progress.watermark_ms
                case rows.CountKey():
                    pages.setdefault(key[:3], {})[key.page] = rows.decode_counters(value)
                case rows.IdsKey():
                    window = (key.fingerprint, key.window_start)
                    ids.setdefault(window, []).append(rows.decode_ids(value))
                    self._id_rows.setdefault(window, []).append(key.first_offset)
                case rows.RejectedKey():
                    self.rejected[key] = rows.decode_rejected(value)
                    self._track((key.fingerprint, key.window_start))
        self.ids = {window: PackIds.of(b"".join(found)) for window, found in ids.items()}
        for tally_key, found in pages.items():
            self.tallies[tally_key] = self._join_pages(tally_key, found)
            self._track(tally_key[:2])
        self._unpublished = _Changes(set(self.tallies), set(self.rejected))

    def counted(self) -> Iterator[tuple[rows.Key, bytes]]:
        """Every live row of counts and rejections, for comparison with another ledger's."""
        for tally_key, tally in self.tallies.items():
            yield from _pages(tally_key, tally)
        for key, packs in self.rejected.items():
            yield key, rows.encode_rejected(packs)

    def _collection(self, window: Window) -> Collection:
        return self.acceptance.collections[window[0]]

    def _track(self, window: Window) -> None:
        """Remember when the window's ids and counts die."""
        if window in self._known or not window[1]:
            return
        self._known.add(window)
        collection = self._collection(window)
        heapq.heappush(self._closing, (collection.closes_at(window[1]), window))
        heapq.heappush(self._dying, (collection.dies_at(window[1]), window))

    def _expire(self) -> None:
        while self._closing and self.watermark_ms > self._closing[0][0] * 1000:
            self._forget_ids(heapq.heappop(self._closing)[1])
        while self._dying and self.watermark_ms > self._dying[0][0] * 1000:
            self._forget_counts(heapq.heappop(self._dying)[1])

    def _forget_ids(self, window: Window) -> None:
        self.ids.pop(window, None)
        self._new_ids.pop(window, None)
        for first_offset in self._id_rows.pop(window, []):
            self._tombstones.append(rows.IdsKey(*window, first_offset))

    def _forget_counts(self, window: Window) -> None:
        self._known.discard(window)
        for tally_key in [key for key in self.tallies if key[:2] == window]:
            self._tombstones.extend(key for key, _ in _pages(tally_key, self.tallies.pop(tally_key)))
            self._unstored.tallies.discard(tally_key)
            self._unpublished.tallies.discard(tally_key)
        for key in [key for key in self.rejected if key[:2] == window]:
            del self.rejected[key]
            self._tombstones.append(key)
            self._unstored.rejected.discard(key)
            self._unpublished.rejected.discard(key)

    def _reject(self, offset: int, rejection: Rejection) -> None:
        key = rows.RejectedKey(rejection.fingerprint, rejection.window_start, rejection.reason)
        self.rejected[key] = self.rejected.get(key, 0) + 1
        self._track((key.fingerprint, key.window_start))
        self._unstored.rejected.add(key)
        self._unpublished.rejected.add(key)
        self._refusals.append(Refusal(offset, rejection.reason))

    def _changed(self, changes: _Changes) -> Iterator[tuple[rows.Key, bytes]]:
        for tally_key in changes.tallies:
            yield from _pages(tally_key, self.tallies[tally_key])
        for key in changes.rejected:
            yield key, rows.encode_rejected(self.rejected[key])

    def _drain_ids(self) -> list[Row]:
        changed: list[Row] = []
        for window, ids in self._new_ids.items():
            for first in range(0, len(ids), rows.IDS_PER_ROW):
                # position grows by at least one for each id, so these keys are never used twice
                unique = self.position - len(ids) + first
                self._id_rows.setdefault(window, []).append(unique)
                value = b"".join(ids[first : first + rows.IDS_PER_ROW])
                changed.append((rows.encode_key(rows.IdsKey(*window, unique)), value))
        self._new_ids = {}
        return changed

    def _join_pages(self, key: tuple[int, int, int], pages: dict[int, rows.Counters]) -> Tally:
        ordered = [pages[page] for page in sorted(pages)]
        counts = np.concatenate([page.counts for page in ordered])
        width = self._collection(key[:2]).width
        if len(counts) != width:
            raise rows.RowError(f"counter row must hold {width} counters, got {len(counts)}")
        return Tally(counts, ordered[0].reports, ordered[0].packs)


def check_known(key: rows.Key, collections: Mapping[int, Collection], partition: int) -> None:
    """Raise UnknownFingerprint when a stored row of this partition belongs to no known collection."""
    fingerprint = getattr(key, "fingerprint", 0)
    if fingerprint and fingerprint not in collections:
        raise UnknownFingerprint(
            f"partition {partition} holds counts of a collection (fingerprint "
            f"{fingerprint:016x}) that the collection file lacks or defines differently; "
            f"put it back as it was, or set another kafka.topic_prefix to begin anew"
        )


def _pages(key: tuple[int, int, int], tally: Tally) -> Iterator[tuple[rows.CountKey, bytes]]:
    for page, first in enumerate(range(0, len(tally.counts), rows.PAGE_COUNTERS)):
        part = tally.counts[first : first + rows.PAGE_COUNTERS]
        counters = rows.Counters(tally.reports, tally.packs, part)
        yield rows.CountKey(*key, page), rows.encode_counters(counters)
