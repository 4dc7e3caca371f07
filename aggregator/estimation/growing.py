"""Growing at each final window: which texts the estimates of a collection list beside its candidates.

Rule 1: the list of a window is a function of the final windows before it, and of what was known before the
first look. So estimates of the window are not of texts that its own noise has chosen, and a final estimate
that is made again, here or by another owner, is the same.
Rule 2: a look adds up the counts of the last `windows` windows, those that are final at the time of the look.
A window that is corrected later enters the looks that follow; no look is repeated.
Rule 3: what is known leaves in the transactions of the same ledger that the estimates leave in.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace as replace_record

from deniable.aggregator.ledger.row_values import narrowest
from deniable.aggregator.records.estimate import EstimateRecord
from deniable.aggregator.records.known_texts import FOUND_TEXTS, KnownTexts
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.estimators.collection import Collection, GrowthRule
from deniable.estimators.decoding.hashed.growth.alphabet import alphabet_of
from deniable.estimators.decoding.hashed.growth.grow import FoundTexts, grow
from deniable.estimators.mechanisms.hashing.prefix_tree import shown_text, utf_8
from deniable.estimators.mechanisms.mechanism import tree_of
from deniable.estimators.rollup.overlap import client_overlap


class GrowingTexts:
    """The texts of one collection that is grown at each final window.

    Parameters
    ----------
    collection : a prefix tree with a rule of growth.
    known : from the ledger.
    windows : final counts by start, unix seconds: at least those of the windows that the next looks add up.
    """

    def __init__(
        self, collection: Collection, known: KnownTexts, windows: Mapping[int, WindowCounts]
    ) -> None:
        if collection.growth is None:
            raise ValueError(f"collection must have a rule of growth, got {collection.name} without one")
        self.collection = collection
        self.known = known
        self._rule: GrowthRule = collection.growth
        self._windows = {start: _narrowed(counts) for start, counts in windows.items()}
        self._stored = known

    @property
    def kept_seconds(self) -> int:
        """Time that a look covers, and for which a text stays listed after it."""
        return self._rule.windows * self.collection.window_seconds

    def add(self, window_start: int, counts: WindowCounts) -> None:
        """Add the counts of a final window, or replace them."""
        self._windows[window_start] = _narrowed(counts)

    def next_look(self, window_start: int) -> int | None:
        """Return the start of the next window to look at before a window is estimated; None if there is none.

        Looks that are too old to list a text are left out: those of windows from before an interruption.
        """
        first = max(self.known.looked_at, window_start - self.kept_seconds)
        waiting = [start for start in self._windows if first <= start < window_start]
        if not self.known.looked_at:
            waiting = waiting and [max(waiting)]  # what was final before growing began has one look
        return min(waiting, default=None)

    def look(self, window_start: int) -> list[bytes]:
        """Grow the tree from the windows that end with this one; return what is found, most frequent first.

        Candidates of the file are listed anyway, so they are not tested: the rate is that of the others. It
        takes seconds, changes nothing, and may run in a thread.
        """
        first = self.collection.window_end(window_start) - self.kept_seconds
        counts = [self._windows[start] for start in sorted(self._windows) if first <= start <= window_start]
        total = sum(counts, start=_nothing(self.collection))
        if total.reports < self.collection.minimum_reports or not total.cohort_sizes.all():
            return []
        return grown(
            self.collection,
            total.counts,
            [each.reports for each in counts],
            self.collection.alphabet,
            self._rule.rate_of_look,
            frozenset(self._candidates()),
        ).texts

    def note(self, window_start: int, prefixes: Sequence[bytes]) -> None:
        """Take what a look has found, and forget the windows that no later look adds up."""
        end = self.collection.window_end(window_start)
        self.known = self.known.after_look(prefixes, end, self.kept_seconds)
        first = end - self.kept_seconds
        self._windows = {start: counts for start, counts in self._windows.items() if start > first}

    def listing(self, window_start: int) -> Collection:
        """Return the collection with the texts that the estimate of a window lists."""
        return replace(self.collection, found=tuple(self._listed(window_start)))

    def dated(self, record: EstimateRecord) -> EstimateRecord:
        """Add to a record of the `listing` of its window when each text was discovered."""
        listed = self._listed(record.window_start)
        moments = {shown_text(prefix): moment for prefix, moment in listed.items()}
        return replace_record(
            record,
            discovered_at=[moments.get(value) for value in record.values],
            diagnostics=record.diagnostics | {FOUND_TEXTS: float(len(listed))},
        )

    def drain(self) -> KnownTexts | None:
        """What is known, if it has changed since the last call."""
        if self.known is self._stored:
            return None
        self._stored = self.known
        return self.known

    def _listed(self, window_start: int) -> dict[bytes, int]:
        """When each listed text was discovered; without those that people would read as listed already."""
        known = set(map(shown_text, self._candidates()))
        found: dict[bytes, int] = {}
        for each in self.known.listed(window_start, self.kept_seconds):
            if (label := shown_text(each.prefix)) not in known:
                known.add(label)
                found[each.prefix] = each.discovered_at
        return found

    def _candidates(self) -> list[bytes]:
        """The candidates of the file, as the last level cuts them."""
        tree = tree_of(self.collection.mechanism)
        assert tree is not None  # noqa: S101 - for mypy: the collection file checks it
        return [tree.prefix(utf_8(each), tree.cohorts - 1) for each in self.collection.candidates]


def first_needed(collection: Collection, known: KnownTexts, now: int) -> int:
    """Return the start of the first window that a look to come may add up, unix seconds.

    Parameters
    ----------
    collection : with a rule of growth.
    known : what is known.
    now : log append time up to which all is counted, unix seconds; windows that end later follow.
    """
    if collection.growth is None:
        raise ValueError(f"collection must have a rule of growth, got {collection.name} without one")
    kept_seconds = collection.growth.windows * collection.window_seconds
    newest = now - collection.window_seconds - collection.grace_seconds
    return max(0, max(known.looked_at, newest - kept_seconds) - kept_seconds)


def grown(
    collection: Collection,
    counts: npt.NDArray[np.int64],
    reports: Sequence[int],
    alphabet: str,
    rate: float,
    known: Set[bytes] = frozenset(),
) -> FoundTexts:
    """Grow the tree from counts of several windows; errors are also valid if clients return in each.

    Parameters
    ----------
    collection : a prefix tree.
    counts : int64 array (L, C g), of all windows together.
    reports : of each window, >= 0, not all 0.
    alphabet : characters of the texts; empty for any.
    rate : largest expected share of false texts among those found, in (0, 1).
    known : texts that are not tested, as the last level cuts them.

    Raises
    ------
    ValueError as `grow`.
    """
    tree = tree_of(collection.mechanism)
    assert tree is not None  # noqa: S101 - for mypy: callers have checked it
    overlap = client_overlap(np.array(reports, np.int64))
    return grow(counts, tree, collection.hash_key, alphabet_of(alphabet), rate, overlap, known)


def _nothing(collection: Collection) -> WindowCounts:
    shape = (collection.cohorts, collection.width)
    return WindowCounts(np.zeros(shape, np.int64), np.zeros(shape[0], np.int64), packs=0, rejected=0)


def _narrowed(counts: WindowCounts) -> WindowCounts:
    """The same counts in few bytes: many windows are kept."""
    counters = counts.counts.astype(f"<u{narrowest(counts.counts)}")
    return replace(counts, counts=counters)
