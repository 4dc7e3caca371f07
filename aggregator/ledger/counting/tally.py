"""The counters of one window and cohort, and their rows: a page for each PAGE_COUNTERS of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from deniable.aggregator.ledger import row_keys, row_values
from deniable.aggregator.ledger.counting.bit_counting import add_pack
from deniable.protocol import wire

TallyKey = tuple[int, int, int]  # fingerprint, window start, cohort


@dataclass
class Tally:
    """Counters of one window and cohort: reports, packs and int64 counts (width,)."""

    counts: npt.NDArray[np.int64]
    reports: int = 0
    packs: int = 0
    _is_shared: bool = False  # with a snapshot: `add` copies the counters first

    @classmethod
    def empty(cls, width: int) -> "Tally":
        """All counters zero."""
        return cls(np.zeros(width, dtype=np.int64))

    def add(self, pack: wire.Pack) -> None:
        """Count one countable pack."""
        add_pack(self._own_counts(), pack)
        self.reports += pack.reports
        self.packs += 1

    def add_counts(self, counts: npt.NDArray[np.int64], reports: int, packs: int) -> None:
        """Count several packs whose reports were counted together, int64 (width,)."""
        own = self._own_counts()
        np.add(own, counts, out=own)
        self.reports += reports
        self.packs += packs

    def add_buckets(self, buckets: npt.NDArray[np.unsignedinteger], packs: int) -> None:
        """Count several packs of buckets: those of all their reports, each below the width."""
        np.add.at(self._own_counts(), buckets, 1)
        self.reports += len(buckets)
        self.packs += packs

    def _own_counts(self) -> npt.NDArray[np.int64]:
        if self._is_shared:
            self.counts, self._is_shared = self.counts.copy(), False
        return self.counts

    def snapshot(self) -> "Tally":
        """A read-only snapshot. The counters are copied when this tally next counts."""
        self._is_shared = True
        return Tally(self.counts, self.reports, self.packs)

    def pages(self, key: TallyKey) -> Iterator[tuple[row_keys.CountKey, row_values.CounterPage]]:
        """Pages with their keys; each becomes a row."""
        for page, first in enumerate(range(0, len(self.counts), row_values.PAGE_COUNTERS)):
            part = self.counts[first : first + row_values.PAGE_COUNTERS]
            yield row_keys.CountKey(*key, page), row_values.CounterPage(self.reports, self.packs, part)

    def page_keys(self, key: TallyKey) -> Iterator[row_keys.CountKey]:
        """Keys of its rows."""
        for page in range(-(-len(self.counts) // row_values.PAGE_COUNTERS)):
            yield row_keys.CountKey(*key, page)


def tallies_of(stored: Mapping[row_keys.CountKey, bytes]) -> dict[TallyKey, Tally]:
    """Tallies from their rows; RowError if one cannot be read."""
    pages: dict[TallyKey, dict[int, row_values.CounterPage]] = {}
    for key, value in stored.items():
        pages.setdefault(key[:3], {})[key.page] = row_values.decode_counters(value)
    return {key: _joined([found[page] for page in sorted(found)]) for key, found in pages.items()}


def _joined(pages: list[row_values.CounterPage]) -> Tally:
    return Tally(np.concatenate([page.counts for page in pages]), pages[0].reports, pages[0].packs)
