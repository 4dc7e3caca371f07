"""Rejected packs without a valid window, logged at a limited rate and shown on the page."""

from collections import Counter
from collections.abc import Iterable

import structlog

from deniable.aggregator.topics.foreign_records import QUIET_SECONDS

OTHER_QUIET_SECONDS = 600.0  # between two lines about one collection

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


class OtherParameters:
    """Collections for which packs with other parameters were rejected, since the last log line of each."""

    def __init__(self) -> None:
        self._unlogged: Counter[str] = Counter()
        self._quiet_until: dict[str, float] = {}

    def add(self, collections: Iterable[str]) -> None:
        """Add one rejected pack for each name; all are names of the worker's own file."""
        self._unlogged.update(collections)

    def log_new(self, now: float) -> None:
        """Log a line for each collection with new packs, unless its last line is too recent.

        Parameters
        ----------
        now : seconds of a monotonic clock.
        """
        for name, packs in sorted(self._unlogged.items()):
            if now >= self._quiet_until.get(name, now):
                log.warning(
                    "packs rejected: a producer has this collection with other parameters",
                    collection=name,
                    packs=packs,
                    remedy="run deniable doctor --as producer where it runs: it says which parameters differ",
                )
                del self._unlogged[name]
                self._quiet_until[name] = now + OTHER_QUIET_SECONDS
