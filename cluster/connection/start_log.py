"""Say what a start waits for, every 10 s: one that is slow is then no start that hangs."""

import math
import time

import structlog

SAY_SECONDS = 10.0

log = structlog.get_logger()


class StartLog:
    """The log of one start.

    Parameters
    ----------
    seconds : after which whoever waits gives up; infinite by default.
    """

    def __init__(self, seconds: float = math.inf) -> None:
        self._seconds = seconds
        self._began = self._said_at = time.monotonic()
        self._is_over = False

    def has_time(self, reason: str, **fields: object) -> bool:
        """Log what is awaited, if nothing was logged for 10 s; return whether the limit is still ahead.

        Parameters
        ----------
        reason : what is awaited; empty once nothing is, and from then on nothing is logged.
        fields : of the line.
        """
        now = time.monotonic()
        self._is_over = self._is_over or not reason
        if not self._is_over and now - self._said_at >= SAY_SECONDS:
            self._said_at = now
            limit = "" if math.isinf(self._seconds) else f" of at most {self._seconds:g}"
            log.info("starting", waits_for=reason, **fields, seconds=f"{now - self._began:.0f}{limit}")
        return now - self._began < self._seconds
