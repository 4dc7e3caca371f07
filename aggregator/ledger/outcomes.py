"""Outcomes of the packs of one transaction, summed until it is committed.

Rule: metrics count a pack when its transaction is committed, never before. So counters are not incremented
twice when a ledger is discarded and its packs are counted again.
"""

from collections import Counter

from aggregator.ledger.acceptance import Rejection
from producers.wire import Pack


class PackOutcomes:
    """Packs counted, and packs rejected by reason; reports of both by fingerprint, where it is known.

    `unattributed` counts rejected packs without a valid window: they appear in no estimate.
    """

    def __init__(self) -> None:
        self.packs = 0
        self.reports: Counter[int] = Counter()
        self.rejected: Counter[str] = Counter()
        self.rejected_reports: Counter[int] = Counter()
        self.unattributed: Counter[str] = Counter()

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
