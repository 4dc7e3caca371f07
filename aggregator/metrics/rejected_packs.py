"""Packs that were turned away and lie in no window: told in the log now and then, and by the page."""

from collections import Counter

import structlog

from aggregator.topics.foreign_records import QUIET_SECONDS

log = structlog.get_logger()


class UnattributedRejections:
    """Such packs by reason, since this worker started; of nothing else in them is any note kept."""

    def __init__(self) -> None:
        self.packs: Counter[str] = Counter()
        self._unlogged: Counter[str] = Counter()
        self._quiet_until = 0.0

    def add(self, packs: Counter[str]) -> None:
        """Take in further ones, by reason."""
        self.packs.update(packs)
        self._unlogged.update(packs)

    def log_new(self, now: float) -> None:
        """Log what came since the last line, unless that is too recent.

        Parameters
        ----------
        now : seconds of a monotonic clock.
        """
        if self._unlogged and now >= self._quiet_until:
            log.warning("packs turned away that lie in no window", **dict(sorted(self._unlogged.items())))
            self._unlogged.clear()
            self._quiet_until = now + QUIET_SECONDS
