"""Outcomes of the packs of one transaction, summed until it is committed.

Rule: metrics count a pack when its transaction is committed, never before. So counters are not incremented
twice when a ledger is discarded and its packs are counted again.
"""

from collections import Counter
from collections.abc import Collection as Names
from collections.abc import Sequence

from deniable.aggregator.ledger.acceptance import UNKNOWN_COLLECTION, Rejection
from deniable.protocol.wire import Pack

HEADER = "collection"  # of a record, with the name of its pack's collection
MOST_HEADERS = 8  # of one record that are looked at

Headers = Sequence[tuple[str, bytes | None]]


class RunOutcome:
    """What a run came to: packs and reports (by fingerprint) counted, and rejections by number in the run."""

    def __init__(self) -> None:
        self.packs = 0
        self.reports: Counter[int] = Counter()
        self.rejections: list[tuple[int, Rejection]] = []

    def add(self, number: int, outcome: Pack | Rejection | None) -> None:
        """Add the outcome of one record, None for a marker; call it in the run's order."""
        if isinstance(outcome, Pack):
            self.packs += 1
            self.reports[outcome.fingerprint] += outcome.reports
        elif outcome is not None:
            self.rejections.append((number, outcome))


class PackOutcomes:
    """Packs counted, and packs rejected by reason; reports of both by fingerprint, where it is known.

    `unattributed` counts rejected packs without a valid window: they appear in no estimate. `same_names` has
    the name of our collection, by offset, for packs of one with the same name and other parameters.
    """

    def __init__(self) -> None:
        self.packs = 0
        self.reports: Counter[int] = Counter()
        self.rejected: Counter[str] = Counter()
        self.rejected_reports: Counter[int] = Counter()
        self.unattributed: Counter[str] = Counter()
        self.same_names: dict[int, str] = {}

    def count_outcome(self, outcome: Pack | Rejection) -> None:
        """Add one pack's outcome."""
        if isinstance(outcome, Pack):
            self.packs += 1
            self.reports[outcome.fingerprint] += outcome.reports
            return
        self.rejected[outcome.reason] += 1
        if outcome.fingerprint:
            self.rejected_reports[outcome.fingerprint] += outcome.reports
        if not outcome.window_start:
            self.unattributed[outcome.reason] += 1

    def count_run(self, outcome: RunOutcome) -> None:
        """Add all outcomes of a run."""
        self.packs += outcome.packs
        self.reports.update(outcome.reports)
        for _, rejection in outcome.rejections:
            self.count_outcome(rejection)

    def name_rejection(
        self, offset: int, outcome: Pack | Rejection, headers: Headers, names: Names[str]
    ) -> None:
        """Note that a pack of an unknown collection carries the name of one of ours.

        Parameters
        ----------
        offset : of the record.
        outcome : of its pack.
        headers : of the record. They explain a rejection, and never change what counts.
        names : of our collections. Only these are kept: never a sender's text.
        """
        if isinstance(outcome, Pack) or outcome.reason != UNKNOWN_COLLECTION:
            return
        given = {value for key, value in headers[:MOST_HEADERS] if key == HEADER}
        for name in names:
            if name.encode() in given:
                self.same_names[offset] = name
