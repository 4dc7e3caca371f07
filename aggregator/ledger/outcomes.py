"""What became of the packs that one transaction takes in, added up until it is committed.

Rule: a worker tells of a pack when the transaction that holds it is committed, never before. What is counted
again, because a ledger was thrown away, is then told once.
"""

from collections import Counter

from aggregator.ledger.acceptance import Rejection
from producers.wire import Pack


class PackOutcomes:
    """Packs counted, and turned away, by reason; reports of both, by fingerprint where it is known.

    `stray` are those turned away that lie in no open window of a known collection: no estimate tells of them.
    """

    def __init__(self) -> None:
        self.packs = 0
        self.reports: Counter[int] = Counter()
        self.rejected: Counter[str] = Counter()
        self.rejected_reports: Counter[int] = Counter()
        self.stray: Counter[str] = Counter()

    def count_outcome(self, outcome: Pack | Rejection) -> None:
        """Take note of one pack."""
        if isinstance(outcome, Pack):
            self.packs += 1
            self.reports[outcome.fingerprint] += outcome.reports
            return
        self.rejected[outcome.reason] += 1
        if outcome.fingerprint:
            self.rejected_reports[outcome.fingerprint] += outcome.reports
        if not outcome.window_start:
            self.stray[outcome.reason] += 1
