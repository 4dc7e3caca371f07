"""The outbox: waiting reports, in buffers until their pack is full, in packs until the broker has them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from deniable.producers.storage.lane_locks import OutboxLane, try_lane
from deniable.producers.storage.store import Store

# Added to the bytes of a pack or buffer: SQLite's rows, and the future header of a buffer.
OVERHEAD_BYTES = 128
MIN_FREE_PAGES = 2048
VACUUM_PAGES = 256

FINGERPRINT_BYTES = 8


@dataclass(frozen=True)
class StoredBuffer:
    """Reports of one collection, window and cohort that are not in a pack yet.

    Parameters
    ----------
    fingerprint : of the collection, unsigned 64-bit.
    window_start : unix seconds.
    cohort : of the reports.
    reports : joined, in the pack's format.
    """

    fingerprint: int
    window_start: int
    cohort: int
    reports: bytes = field(repr=False)


@dataclass(frozen=True)
class StoredPack:
    """A pack that the broker has not acknowledged.

    Parameters
    ----------
    number : never reused.
    record : bytes to send.
    """

    number: int
    record: bytes = field(repr=False)


@dataclass(frozen=True)
class Depth:
    """The backlog of one lane.

    Parameters
    ----------
    packs : their number.
    bytes : of packs and buffers, including OVERHEAD_BYTES for each.
    age_seconds : of the oldest pack; 0 without packs.
    """

    packs: int
    bytes: int
    age_seconds: float


class Outbox:
    """The unsent reports of one producer. Changes belong to the store's enclosing transaction.

    Parameters
    ----------
    store : Store.
    lane : OutboxLane of this producer.
    folder : of the store.
    limit_bytes : of all lanes together, at least 1.

    Raises
    ------
    ValueError if limit_bytes is out of range.
    """

    def __init__(self, store: Store, lane: OutboxLane, folder: Path, limit_bytes: int = 268_435_456) -> None:
        if limit_bytes < 1:
            raise ValueError(f"outbox_bytes must be in [1, inf), got {limit_bytes}")
        self._store = store
        self._lane = lane.number
        self._folder = folder
        self._limit = limit_bytes

    @property
    def path(self) -> Path:
        """Path of the store."""
        return self._store.path

    def adopt(self, own: bool = False) -> list[StoredBuffer]:
        """Take over the packs and buffers of producers that no longer run.

        Their packs now belong to this lane, possibly with lower numbers than its own. Their buffers are
        removed and returned, to be saved or packed in the same transaction.

        Parameters
        ----------
        own : also return buffers of this lane's previous owner. Only before the first `save`: later buffers
            are this producer's.

        Raises
        ------
        StoreError if the store or a lock file cannot be used.
        """
        left = self._take_buffers(self._lane) if own else []
        for (other,) in self._store.rows("SELECT lane FROM lanes WHERE lane <> ?", self._lane):
            held = try_lane(self._folder, other)
            if held is None:
                continue
            # A later owner of that lane sees the result of this transaction, or waits for it.
            try:
                left += self._take_buffers(other)
                self._store.rows("UPDATE packs SET lane = ? WHERE lane = ?", self._lane, other)
                for packs, size in self._store.rows("SELECT packs, bytes FROM lanes WHERE lane = ?", other):
                    self._count(packs, size)
                self._store.rows("DELETE FROM lanes WHERE lane = ?", other)
            finally:
                held.release()
        return left

    def save(self, buffers: Iterable[StoredBuffer]) -> None:
        """Replace whole buffers; remove those without reports."""
        for buffered in buffers:
            key = (
                self._lane,
                _fingerprint_bytes(buffered.fingerprint),
                buffered.window_start,
                buffered.cohort,
            )
            removed = self._store.rows(
                "DELETE FROM buffers WHERE lane = ? AND fingerprint = ? AND window_start = ? AND cohort = ?"
                " RETURNING length(reports)",
                *key,
            )
            freed = sum(size + OVERHEAD_BYTES for (size,) in removed)
            if buffered.reports:
                self._store.rows("INSERT INTO buffers VALUES (?, ?, ?, ?, ?)", *key, buffered.reports)
                freed -= len(buffered.reports) + OVERHEAD_BYTES
            self._count(0, -freed)

    def put(self, records: Sequence[bytes], now: float) -> list[int]:
        """Store packs until `forget` deletes them.

        Parameters
        ----------
        records : encoded packs.
        now : unix seconds.

        Returns
        -------
        Their numbers, ascending.
        """
        numbers = [
            self._store.insert("INSERT INTO packs (lane, born) VALUES (?, ?)", self._lane, int(now))
            for _ in records
        ]
        self._store.many("INSERT INTO records VALUES (?, ?)", zip(numbers, records, strict=True))
        self._count(len(records), sum(len(record) + OVERHEAD_BYTES for record in records))
        return numbers

    def waiting(self, after: int, limit_bytes: int) -> list[StoredPack]:
        """Return packs of this lane in the order of their numbers.

        Parameters
        ----------
        after : only packs with greater numbers; 0 for all.
        limit_bytes : total size of records. The first pack is returned whatever its size.
        """
        found: list[StoredPack] = []
        room = limit_bytes
        for number, record in self._store.each(
            "SELECT number, record FROM packs JOIN records USING (number) WHERE lane = ? AND number > ?"
            " ORDER BY number",
            self._lane,
            after,
        ):
            room -= len(record)
            if found and room < 0:
                break
            found.append(StoredPack(number, record))
        return found

    def forget(self, numbers: Iterable[int]) -> None:
        """Delete packs that the broker has; ignore unknown numbers.

        Free pages are reused; while most of the file is free, some are returned to the file system.
        """
        packs = freed = 0
        for number in numbers:
            removed = self._store.rows(
                "DELETE FROM records WHERE number = ? RETURNING length(record)", number
            )
            self._store.rows("DELETE FROM packs WHERE number = ?", number)
            packs += len(removed)
            freed += sum(size + OVERHEAD_BYTES for (size,) in removed)
        self._count(-packs, -freed)
        self._give_back_pages()

    def room(self) -> int:
        """Return the bytes that may still be added over all lanes, OVERHEAD_BYTES for each pack included."""
        ((used,),) = self._store.rows("SELECT coalesce(sum(bytes), 0) FROM lanes")
        return self._limit - int(used)

    def depth(self, now: float) -> Depth:
        """Return this lane's backlog; `now` is unix seconds."""
        counted = self._store.rows("SELECT packs, bytes FROM lanes WHERE lane = ?", self._lane)
        packs, size = counted[0] if counted else (0, 0)
        oldest = self._store.rows("SELECT born FROM packs WHERE lane = ? ORDER BY number LIMIT 1", self._lane)
        return Depth(packs, size, max(0.0, now - oldest[0][0]) if oldest else 0.0)

    def _take_buffers(self, lane: int) -> list[StoredBuffer]:
        rows = self._store.rows(
            "DELETE FROM buffers WHERE lane = ? RETURNING fingerprint, window_start, cohort, reports", lane
        )
        taken = [StoredBuffer(int.from_bytes(name, "little"), *rest) for name, *rest in rows]
        freed = sum(len(buffered.reports) + OVERHEAD_BYTES for buffered in taken)
        self._store.rows("UPDATE lanes SET bytes = bytes - ? WHERE lane = ?", freed, lane)
        return taken

    def _give_back_pages(self) -> None:
        ((free,),) = self._store.rows("PRAGMA freelist_count")
        ((pages,),) = self._store.rows("PRAGMA page_count")
        if free > max(MIN_FREE_PAGES, pages // 2):
            # One at a time: each is a row without columns, and sqlite3 steps only to the first of them.
            for _ in range(VACUUM_PAGES):
                self._store.rows("PRAGMA incremental_vacuum(1)")

    def _count(self, packs: int, size: int) -> None:
        self._store.rows(
            "INSERT INTO lanes VALUES (?, ?, ?)"
            " ON CONFLICT DO UPDATE SET packs = packs + excluded.packs, bytes = bytes + excluded.bytes",
            self._lane,
            packs,
            size,
        )


def _fingerprint_bytes(fingerprint: int) -> bytes:
    return fingerprint.to_bytes(FINGERPRINT_BYTES, "little")
