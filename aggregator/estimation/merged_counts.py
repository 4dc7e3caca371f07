"""Merges the partitions' rows of `counts` into the counts of each window. Pure.

Rule: a source's rows and its progress row come from one transaction, rows first. So a reader of progress up
to a position has read every row as of that position, or newer.
"""

from dataclasses import dataclass

import numpy as np

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.row_keys import Window
from deniable.aggregator.ledger.terms import Terms
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection


@dataclass
class _Sources:
    counters: dict[tuple[int, row_keys.CountKey], row_values.CounterPage]
    rejected: dict[tuple[int, str], int]


class MergedCounts:
    """All rows of one partition of `counts`, the newest of each key."""

    def __init__(self) -> None:
        self.progress: dict[int, row_values.LedgerProgress] = {}
        self._terms: dict[int, dict[int, Terms]] = {}  # by fingerprint, then by source
        self._windows: dict[Window, _Sources] = {}

    def apply(self, key: bytes, value: bytes | None) -> Window | None:
        """Apply one record; return the window it changed, None for progress or terms."""
        row, source = row_keys.split_source(key)
        match row:
            case row_keys.SingleKey.PROGRESS:
                if value is not None:
                    self.progress[source] = row_values.decode_progress(value)
                return None
            case row_keys.TermsKey():
                if value is not None:
                    self._terms.setdefault(row.fingerprint, {})[source] = row_values.decode_terms(value)
                return None
            case row_keys.CountKey():
                window = (row.fingerprint, row.window_start)
                found = self._windows.setdefault(window, _Sources({}, {}))
                if value is None:
                    found.counters.pop((source, row), None)
                else:
                    found.counters[source, row] = row_values.decode_counters(value)
            case row_keys.RejectedKey():
                window = (row.fingerprint, row.window_start)
                found = self._windows.setdefault(window, _Sources({}, {}))
                if value is None:
                    found.rejected.pop((source, row.reason), None)
                else:
                    found.rejected[source, row.reason] = row_values.decode_rejected(value)
            case _:
                raise row_values.RowError(f"{type(row).__name__} has no place in the counts topic")
        if not found.counters and not found.rejected:
            del self._windows[window]
        return window

    def windows(self) -> list[Window]:
        """Windows that have counts, oldest first."""
        counted = [window for window, found in self._windows.items() if found.counters]
        return sorted(counted, key=lambda window: window[1])

    def packs(self, window: Window) -> int:
        """Packs counted in a window: the revision of its estimate."""
        found = self._windows.get(window)
        if found is None:
            return 0
        return sum(counters.packs for (_, key), counters in found.counters.items() if key.page == 0)

    def reports(self, window: Window) -> int:
        """Reports counted in a window."""
        found = self._windows.get(window)
        if found is None:
            return 0
        return sum(counters.reports for (_, key), counters in found.counters.items() if key.page == 0)

    def closed_until_ms(self, partitions: int) -> int:
        """Windows that close earlier are closed in all partitions, unix milliseconds; 0 until all report.

        It rests on append times alone: whatever the broker appends later bears a later time.
        """
        if len(self.progress) < partitions:
            return 0
        return min(progress.closed_until_ms for progress in self.progress.values())

    def open_until(self, closes_ms: int, *, waits: bool = False) -> list[int]:
        """Partitions that have not passed this append time, unix milliseconds.

        With `waits`, those in which windows that close then are open: they wait for relays, and only if more
        time passes there, no longer than they may.
        """
        return [
            source
            for source, each in self.progress.items()
            if (each.closed_until_ms if waits else each.watermark_ms) <= closes_ms
        ]

    def latest_ms(self) -> int:
        """The latest append time counted in any partition, unix milliseconds; 0 before the first."""
        return max((progress.watermark_ms for progress in self.progress.values()), default=0)

    def is_whole(self, window: Window) -> bool:
        """Whether no partition lost records of it uncounted."""
        return all(window[1] >= progress.whole_from for progress in self.progress.values())

    def closes_at(self, window: Window, partitions: int) -> int | None:
        """Append time after which no partition counts it, unix seconds; None until all have terms."""
        terms = self._terms.get(window[0], {})
        if len(terms) < partitions:
            return None
        return max(each.closes_at(window[1]) for each in terms.values())

    def is_dying(self, window: Window) -> bool:
        """Whether a partition may have deleted its rows: the rest is not the whole window."""
        latest = max((progress.closed_until_ms for progress in self.progress.values()), default=0)
        return any(
            latest > each.dies_at(window[1]) * 1000 for each in self._terms.get(window[0], {}).values()
        )

    def is_dead(self, window: Window, partitions: int) -> bool:
        """Whether every partition has deleted its rows."""
        terms = self._terms.get(window[0], {})
        if min(len(terms), len(self.progress)) < partitions:
            return False
        earliest = self.closed_until_ms(partitions)
        return all(earliest > each.dies_at(window[1]) * 1000 for each in terms.values())

    def all_windows(self, collection: Collection) -> WindowCounts:
        """Sum over the partitions and over all stored windows of a collection."""
        nothing = self.totals((collection.fingerprint, -1), collection)
        windows = [window for window in self._windows if window[0] == collection.fingerprint]
        return sum((self.totals(window, collection) for window in windows), nothing)

    def totals(self, window: Window, collection: Collection) -> WindowCounts:
        """Sum over the partitions."""
        counts = np.zeros((collection.cohorts, collection.width), dtype=np.int64)
        sizes = np.zeros(collection.cohorts, dtype=np.int64)
        found = self._windows.get(window, _Sources({}, {}))
        packs = 0
        for (_, key), counters in found.counters.items():
            first = key.page * row_values.PAGE_COUNTERS
            counts[key.cohort, first : first + len(counters.counts)] += counters.counts
            if key.page == 0:
                sizes[key.cohort] += counters.reports
                packs += counters.packs
        return WindowCounts(counts, sizes, packs, sum(found.rejected.values()))
