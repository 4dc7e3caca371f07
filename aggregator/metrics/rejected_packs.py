"""Rejected packs without a valid window, logged at a limited rate and shown on the page."""

from collections import Counter

import structlog

from aggregator.topics.foreign_records import QUIET_SECONDS

log = structlog.get_logger()


class UnattributedRejections:
    """Number of packs by reason since this worker started; nothing else about them is kept."""

    def __init__(self) -> None:
        self.packs: Counter[str] = Counter()
        self._unlogged: Counter[str] = Counter()
        self._quiet_until = 0.0

    def add(self, packs: Counter[str]) -> None:
        """Add packs by reason."""
        self.packs.update(packs)
        self._unlogged.update(packs)

    def log_new(self, now: float) -> None:
        """Log new packs, unless the last line is too recent.

        Parameters
        ----------
        now : seconds of a monotonic clock.
        """
        if self._unlogged and now >= self._quiet_until:
            log.warning("rejected packs without a valid window", **dict(sorted(self._unlogged.items())))
            self._unlogged.clear()
            self._quiet_until = now + QUIET_SECONDS
