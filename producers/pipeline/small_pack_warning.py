"""Warn of small packs: a pack of few reports shows when its clients reported."""

import logging

import numpy as np

SMALL_REPORTS = 10
WATCH_SECONDS = 60.0
REPEAT_SECONDS = 3600.0

_log = logging.getLogger(__name__)


class SmallPacks:
    """Watches the number of reports in packs, which does not depend on values.

    Parameters
    ----------
    now : seconds of any monotonic clock, as in `check`.
    """

    def __init__(self, now: float) -> None:
        self._sizes: list[int] = []
        self._next = now + WATCH_SECONDS

    def note(self, reports: int) -> None:
        """Record a pack's number of reports."""
        self._sizes.append(reports)

    def check(self, now: float) -> None:
        """Once a minute, warn if most packs of that minute were small; at most one warning an hour."""
        if now < self._next:
            return
        median = float(np.median(self._sizes)) if self._sizes else SMALL_REPORTS
        small = median < SMALL_REPORTS
        if small:
            _log.warning(
                "packs are small, and whoever receives them sees when each arrives; raise pack_seconds: "
                "median of %d packs is %g reports",
                len(self._sizes),
                median,
            )
        self._sizes.clear()
        self._next = now + (REPEAT_SECONDS if small else WATCH_SECONDS)
