"""From past events to the counts of their windows, as producers randomize and workers count.

Rule 1: nothing is randomized into a window that is still open, since live reports may come, or that is in the
files, since that would be another look at the same people.
Rule 2: events of such windows are charged all the same. So what is refused depends on the input alone, and a
later run over the same input, or a longer one, refuses the same reports: together they keep the budget.
Rule 3: reports are counted at once, and never stored.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from deniable.aggregator.ledger.counting.counts import Counts
from deniable.aggregator.records.window_counts import WindowCounts
from deniable.analysis.export.day_files import DayFiles
from deniable.config.settings.allowance import Allowance
from deniable.deploy.backfill.past_limits import PastLimits
from deniable.deploy.produce.input.batches import InputBatch
from deniable.estimators.errors import DeniableError
from deniable.producers.budget.charging import REASONS
from deniable.producers.pipeline.packer import Packer
from deniable.producers.pipeline.recording.submissions import Randomization
from deniable.producers.randomization.randomness import Words
from deniable.producers.responders.validation import window_starts
from deniable.protocol.words import number_of

MAX_COUNT_BYTES = 1 << 29  # of all new windows of a run; writing them takes a few times as much
TALLY_BYTES = 1024  # of a cohort's counters, beside these
PACK_REPORTS = 1000


class TooManyWindowsError(DeniableError):
    """The counts of all windows of the input do not fit in memory."""


class PastCounts:
    """Counts the events of a run.

    Parameters
    ----------
    allowance : of the collection.
    randomization : the producer's.
    limits : of clients; None if every event is of a different client.
    files : that the windows will be written to, of each kind.
    words : source of the packs' order, which counts do not depend on.
    now : unix seconds.
    seen : called with the counted reports of each batch, in wire format, uint8 (n, bytes of a report).
    max_bytes : of the counters of all windows.

    Attributes
    ----------
    events : events of each window, by start.
    refused : of these over a limit of their client, by start and reason.
    open, present : starts of windows that are still open, and of those that the files have.
    counted : starts of all other windows.
    """

    def __init__(
        self,
        allowance: Allowance,
        randomization: Randomization,
        limits: PastLimits | None,
        files: Sequence[DayFiles],
        words: Words,
        now: float,
        seen: Callable[[NDArray[np.uint8]], None] = lambda rows: None,
        max_bytes: int = MAX_COUNT_BYTES,
    ) -> None:
        self.collection = allowance.collection
        self.events: Counter[int] = Counter()
        self.refused: Counter[tuple[int, str]] = Counter()
        self.open: set[int] = set()
        self.present: set[int] = set()
        self.counted: set[int] = set()
        self._randomization = randomization
        self._limits = limits
        self._files = files
        self._packer = Packer([self.collection], PACK_REPORTS, 0.0, words)
        self._now = now
        self._seen = seen
        self._max_bytes = max_bytes
        self._counts = Counts()
        self._in_file: tuple[dict[int, set[int]], ...] = tuple({} for _ in files)  # windows, by its span

    def add(self, batch: InputBatch) -> None:
        """Count a batch, whose events have times.

        Raises
        ------
        TooManyWindowsError if the windows do not fit; StoreError if clients cannot be charged; OSError or
        AnalysisError if a file cannot be read.
        """
        times = np.array(batch.times, np.float64)
        windows = window_starts(times, len(times), self.collection.window_seconds)
        starts, each = np.unique(windows, return_inverse=True)
        self._sort_out(starts.tolist())
        self.events.update(dict(zip(starts.tolist(), np.bincount(each).tolist(), strict=True)))
        is_new = np.array([start in self.counted for start in starts.tolist()], bool)[each]
        self._count(batch, times, is_new & self._accepted(batch, windows))

    def totals(self, start: int) -> WindowCounts:
        """Return the counts of a window."""
        collection = self.collection
        counts = np.zeros((collection.cohorts, collection.width), np.int64)
        sizes, packs = np.zeros(collection.cohorts, np.int64), 0
        for cohort in range(collection.cohorts):
            if tally := self._counts.tallies.get((collection.fingerprint, start, cohort)):
                counts[cohort], sizes[cohort] = tally.counts, tally.reports
                packs += tally.packs
        return WindowCounts(counts, sizes, packs, 0)

    def _sort_out(self, starts: list[int]) -> None:
        """Decide what becomes of windows, unless that is known."""
        for start in starts:
            if start in self.events:
                continue
            if self._is_present(start):
                self.present.add(start)
            elif self.collection.closes_at(start) >= self._now:
                self.open.add(start)
            else:
                self.counted.add(start)
        size = self.collection.cohorts * (8 * self.collection.width + TALLY_BYTES)
        if len(self.counted) * size > self._max_bytes:
            raise TooManyWindowsError(
                f"the input must have at most {number_of(self._max_bytes // size, 'new window', ',')} of "
                f"{self.collection.name}, whose counts of {size:,} bytes each fit in memory, and has more; "
                "nothing was written: divide the input by time, where a period of the budget ends"
            )

    def _is_present(self, start: int) -> bool:
        """Whether the files of any kind have a window."""
        found = False
        for files, known in zip(self._files, self._in_file, strict=True):
            span = start // files.seconds
            if span not in known:
                known[span] = files.windows_beside(start)
            found = found or start in known[span]
        return found

    def _accepted(self, batch: InputBatch, windows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Charge all events; return which are within the limits, bool (n,)."""
        if self._limits is None or batch.clients is None:
            return np.ones(len(windows), bool)
        charged = self._limits.charge(batch.clients, windows)
        for number, reason in REASONS.items():
            starts = windows[charged.decisions == number].tolist()
            self.refused.update((start, reason) for start in starts)
        return charged.accepted

    def _count(self, batch: InputBatch, times: NDArray[np.float64], chosen: NDArray[np.bool_]) -> None:
        """Randomize the chosen events, bool (n,), and count their reports."""
        if not chosen.any():
            return
        values = [*compress(batch.values, chosen)]
        clients = None if batch.clients is None else [*compress(batch.clients, chosen)]
        name, fingerprint = self.collection.name, self.collection.fingerprint
        for part in self._randomization.submissions(name, values, clients, times[chosen]):
            self._seen(part.rows)
            full = self._packer.add(fingerprint, part.windows, part.cohorts, part.rows, 0.0)
            for pack in (*full, *self._packer.flush()):
                self._counts.add(pack)
